// How the PEs of one node share segments: the owner offers a segment, and the others map it. PEs
// that are threads of one process use the same mapping.
//
// Not thread-safe; used at init, by the thread that builds the PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/heap/segment.hpp"

namespace weft::heap {

// The data with which a PE of the node offers a segment to the others.
struct SegmentOffer {
  std::int64_t pid = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;
  // PEs that are threads of one process share the mapping itself.
  std::uint64_t process = 0;
  std::uint64_t base = 0;
};

[[nodiscard]] SegmentOffer offer_of(const Segment& segment);

// The peers' segments that are mapped here, for as long as this object lives.
class PeerSegments {
 public:
  explicit PeerSegments(Pages pages) : pages_(pages) {}

  // Throws Error.
  [[nodiscard]] std::byte* map(const SegmentOffer& offer);

 private:
  Pages pages_;
  std::vector<Segment> segments_;
};

}  // namespace weft::heap
