#include "src/transport/rails/source_copies.hpp"

#include <algorithm>
#include <cstring>

#include <sys/uio.h>
#include <unistd.h>

namespace weft::transport::rails {
namespace {

// The largest put that is copied instead of registered. The copy takes 1 to 2 us.
constexpr std::size_t kCopiedBytesMax = std::size_t{16} << 10U;

}  // namespace

bool SourceCopies::is_better_copied(const Operation& operation) const {
  const bool is_small_put =
      (operation.kind == OperationKind::Put || operation.kind == OperationKind::PutSignal) &&
      operation.bytes <= kCopiedBytesMax && !operation.on_device;
  if (!is_small_put) {
    return false;
  }
  const auto* first = static_cast<const std::byte*>(operation.local);
  return std::ranges::none_of(state_.regions, [&](std::span<std::byte> region) {
    return first >= region.data() && first + operation.bytes <= region.data() + region.size();
  });
}

void SourceCopies::copy(OperationRecord& record) {
  if (record.copy != nullptr) {
    return;
  }
  record.copy = state_.copies.take(record.operation.bytes);
  std::memcpy(record.copy->data(), record.operation.local, record.operation.bytes);
  record.operation.local = record.copy->data();
}

bool SourceCopies::copy_readable(OperationRecord& record) {
  const std::size_t bytes = record.operation.bytes;
  SourceCopy* copy = state_.copies.take(bytes);
  const iovec here{copy->data(), bytes};
  const iovec there{record.operation.local, bytes};
  if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(bytes)) {
    state_.copies.give(copy);
    return false;
  }
  record.copy = copy;
  record.operation.local = copy->data();
  return true;
}

}  // namespace weft::transport::rails
