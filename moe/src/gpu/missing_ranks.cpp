#include "moe/src/gpu/missing_ranks.hpp"

#include <vector>

#include <fmt/format.h>

#include "moe/src/plan/failure.hpp"
#include "src/base/atomic.hpp"

namespace weft::moe::engine {

std::string describe_blocks(const gpu::Record& record) {
  if (record.missing_begun == 0) {
    return {};
  }
  return fmt::format(
      " (only {} of the {} blocks of this PE's kernel were running: another kernel, or the limits "
      "of its stream or process, had the other multiprocessors; give the exchange fewer blocks)",
      record.missing_begun, record.missing_blocks);
}

MissingRanks::MissingRanks(gpu::Record& record,
                           const Ranks& ranks,
                           const Timeouts& timeouts,
                           const weft_moe_config& config)
    : record_(record),
      ranks_(ranks),
      timeouts_(timeouts),
      masks_(config.on_timeout == WEFT_MOE_MASK) {
  const auto look = [](void* self) { static_cast<MissingRanks*>(self)->look(); };
  watch_.reset(weft_watch_create(look, this));
  if (watch_ == nullptr) {
    check(WEFT_OUT_OF_MEMORY);
  }
}

MissingRanks::~MissingRanks() {
  watch_.reset();
  look();
}

std::uint64_t MissingRanks::all() const {
  // SYNC moe-record (pairs with moe/src/gpu/kernels/call.cuh): written after the call and the step.
  return AtomicRef(record_.missing).load(std::memory_order_acquire);
}

void MissingRanks::set(std::uint64_t ranks) {
  look();
  const std::lock_guard lock(mutex_);
  said_ = ranks;
  // relaxed: kernels that write it are launched later
  AtomicRef(record_.missing).store(ranks, std::memory_order_relaxed);
}

std::string MissingRanks::describe(std::uint64_t ranks) const {
  std::vector<std::size_t> missing;
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if ((ranks >> rank & 1) != 0) {
      missing.push_back(rank);
    }
  }
  return fmt::format(
      "{} {}: nothing came from {} of {} within {} s{}{}",
      record_.missing_step == WEFT_MOE_DISPATCH ? "dispatch" : "combine", record_.missing_call,
      ranks_.names(missing), ranks_.count(), timeouts_.of_call(record_.missing_call),
      describe_blocks(record_),
      masks_ ? "; the exchange goes on without these PEs, until weft_moe_rejoin takes them back"
             : ", and the exchange is broken; look at what these PEs do, or raise the timeout");
}

void MissingRanks::look() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t fresh = all() & ~said_;
  if (fresh == 0) {
    return;
  }
  said_ |= fresh;
  weft_log(masks_ ? WEFT_LOG_WARN : WEFT_LOG_ERROR, describe(fresh).c_str());
}

}  // namespace weft::moe::engine
