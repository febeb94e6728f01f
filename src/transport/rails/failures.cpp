#include "src/transport/rails/failures.hpp"

#include <string_view>

#include "src/base/log.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kReportIntervalNs = 1'000'000'000;

const char* name_of(const Operation& operation) {
  return operation.kind == OperationKind::Get ? "get" : "put";
}

}  // namespace

bool Failures::end(OperationRecord& record) {
  record.failed = true;
  record.refused = record.sequenced;
  const bool is_news =
      state_.refused_ns == 0 || state_.now_ns - state_.refused_ns >= kReportIntervalNs;
  state_.refused_ns = is_news ? state_.now_ns : state_.refused_ns;
  return is_news;
}

void Failures::end_refused(OperationRecord& record, const fabric::Rail& rail) {
  if (!end(record)) {
    return;
  }
  const Operation& operation = record.operation;
  const std::string_view action = rail.last_action();
  log::error(
      "{} of {} bytes at {} for PE {} failed: {} on rail {} ({}) says {}; {}", name_of(operation),
      operation.bytes, operation.local, operation.peer.value, action, rail.nic(),
      rail.address_text(), fabric::error_words(rail.last_error()),
      action == fabric::kRegisterAction
          ? "check that all of it is mapped; raise RLIMIT_MEMLOCK (ulimit -l), or use memory "
            "of the symmetric heap, which is already registered"
          : "the provider does not support this operation; WEFT_PROVIDER selects another");
}

void Failures::end_repeated(const PieceRecord& piece, std::string_view words) {
  const Operation& operation = piece.operation->operation;
  if (end(*piece.operation)) {
    log::error(
        "{} of {} bytes at {} for PE {} failed {} times, last with {}; check that its memory stays "
        "mapped on both PEs until it is complete",
        name_of(operation), operation.bytes, operation.local, operation.peer.value, piece.faults,
        words);
  }
}

}  // namespace weft::transport::rails
