// Who is in the job and where: what every PE tells all others at init, checked for agreement, and
// which of them share a node with this one.
//
// Built once at init by one thread; constant after.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/ids.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/heap.hpp"
#include "src/topology/node.hpp"

namespace weft::runtime {

struct Member {
  std::string version;
  std::string node_identity;
  std::string hostname;
  heap::SegmentOffer heap;
};

class Membership {
 public:
  // Collective. Throws Error (Mismatch) if versions or heap sizes differ, naming the PEs.
  Membership(const Config& config, bootstrap::Bootstrap& bootstrap, const heap::Heap& heap);

  [[nodiscard]] const Member& member(Pe pe) const { return members_[pe.value]; }

  [[nodiscard]] const topology::NodePlace& place(Pe pe) const { return places_[pe.value]; }

  [[nodiscard]] std::uint32_t node_count() const;
  // By PE: whether it shares my node.
  [[nodiscard]] std::vector<bool> locals() const;
  // By PE.
  [[nodiscard]] std::vector<heap::SegmentOffer> offers() const;

 private:
  Pe me_;
  std::vector<Member> members_;
  std::vector<topology::NodePlace> places_;
};

// One Member as bytes and back; throws Error for bytes that are not one. Pure.
[[nodiscard]] bootstrap::Blob encode(const Member& member);
[[nodiscard]] Member decode(const bootstrap::Blob& blob, Pe pe);

}  // namespace weft::runtime
