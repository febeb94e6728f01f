// Where the pieces of an operation lie: in one range, or in the segments of an operation that
// gathers. A piece lies in one segment. While the operation has a copy of its source, the segments
// lie there one behind the other.
//
// Pure functions, called under the transport's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

// Where a piece is read and where it goes.
struct Ends {
  std::byte* here = nullptr;
  heap::Place there;
};

[[nodiscard]] inline Ends ends_of(const OperationRecord& record, std::uint64_t offset) {
  const Operation& operation = record.operation;
  Ends ends{.here = static_cast<std::byte*>(operation.local) + offset, .there = operation.remote};
  if (record.segments == nullptr) {
    ends.there.offset.value += offset;
    return ends;
  }
  const auto [segment, inside] = record.segments->at(offset);
  if (record.copy == nullptr) {
    ends.here = static_cast<std::byte*>(segment->local) + inside;
  }
  ends.there = segment->remote;
  ends.there.offset.value += inside;
  return ends;
}

// How much of the operation follows in one range.
[[nodiscard]] inline std::uint64_t bytes_together(const OperationRecord& record) {
  if (record.segments == nullptr) {
    return record.operation.bytes - record.planned_bytes;
  }
  const auto [segment, inside] = record.segments->at(record.planned_bytes);
  return segment->bytes - inside;
}

}  // namespace weft::transport::rails
