// The segments of an operation that gathers, kept as long as a piece of it may be posted: its bytes
// are those of one segment after the other.
//
// Guarded by RailsTransport's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/transport/operation.hpp"

namespace weft::transport::rails {

class SegmentList {
 public:
  struct Place {
    const GatherSegment* segment = nullptr;
    std::uint64_t inside = 0;  // from its begin
  };

  void assign(std::span<const GatherSegment> segments) {
    segments_.assign(segments.begin(), segments.end());
    ends_.clear();
    std::uint64_t end = 0;
    for (const GatherSegment& segment : segments_) {
      end += segment.bytes;
      ends_.push_back(end);
    }
  }

  [[nodiscard]] std::span<const GatherSegment> all() const { return segments_; }

  // The segment with the byte at `offset`, which is below the sum of all.
  [[nodiscard]] Place at(std::uint64_t offset) const {
    const auto i =
        static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
    return {&segments_[i], segments_[i].bytes - (ends_[i] - offset)};
  }

 private:
  std::vector<GatherSegment> segments_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace weft::transport::rails
