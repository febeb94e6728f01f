#include "src/transport/rails/source_copies.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include <sys/uio.h>
#include <unistd.h>

namespace weft::transport::rails {
namespace {

// The largest put that is copied instead of registered. The copy takes 1 to 2 us.
constexpr std::size_t kCopiedBytesMax = std::size_t{16} << 10U;

// All that is copied: the segments, or the whole.
std::span<const GatherSegment> sources_of(const OperationRecord& record,
                                          const GatherSegment& whole) {
  return record.segments == nullptr ? std::span(&whole, 1) : record.segments->all();
}

GatherSegment whole_of(const Operation& operation) {
  return {.remote = operation.remote, .local = operation.local, .bytes = operation.bytes};
}

}  // namespace

bool SourceCopies::is_better_copied(const Operation& operation) const {
  const bool is_small_put =
      (operation.kind == OperationKind::Put || operation.kind == OperationKind::PutSignal) &&
      operation.bytes <= kCopiedBytesMax && !operation.on_device;
  if (!is_small_put) {
    return false;
  }
  if (operation.segments.empty()) {
    return !is_registered(operation.local, operation.bytes);
  }
  return !std::ranges::all_of(operation.segments, [&](const GatherSegment& segment) {
    return is_registered(segment.local, segment.bytes);
  });
}

bool SourceCopies::is_registered(const void* source, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(source);
  return std::ranges::any_of(state_.regions, [&](std::span<std::byte> region) {
    return first >= region.data() && first + bytes <= region.data() + region.size();
  });
}

void SourceCopies::copy(OperationRecord& record) {
  if (record.copy != nullptr) {
    return;
  }
  record.copy = state_.copies.take(record.operation.bytes);
  std::byte* to = record.copy->data();
  const GatherSegment whole = whole_of(record.operation);
  for (const GatherSegment& segment : sources_of(record, whole)) {
    std::memcpy(to, segment.local, segment.bytes);
    to += segment.bytes;
  }
  record.operation.local = record.copy->data();
}

bool SourceCopies::copy_readable(OperationRecord& record) {
  SourceCopy* copy = state_.copies.take(record.operation.bytes);
  std::byte* to = copy->data();
  const GatherSegment whole = whole_of(record.operation);
  for (const GatherSegment& segment : sources_of(record, whole)) {
    const iovec here{to, segment.bytes};
    const iovec there{segment.local, segment.bytes};
    if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) !=
        static_cast<ssize_t>(segment.bytes)) {
      state_.copies.give(copy);
      return false;
    }
    to += segment.bytes;
  }
  record.copy = copy;
  record.operation.local = copy->data();
  return true;
}

}  // namespace weft::transport::rails
