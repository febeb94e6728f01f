// The PEs of the job and their locations: the data that every PE sends to all others at init,
// checked for agreement, and the PEs that share a node with this one.
//
// Built once at init by one thread; constant afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/ids.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/heap.hpp"
#include "src/topology/cores.hpp"
#include "src/topology/node.hpp"

namespace weft::runtime {

// Symmetric memory besides the heap.
struct RegionOffer {
  std::string name;
  heap::SegmentOffer segment;
};

struct Member {
  std::string version;
  std::string node_identity;
  std::string hostname;
  topology::CoreMask cores{};  // that it may run on
  heap::SegmentOffer heap;
  std::vector<RegionOffer> regions;  // the same names and sizes on every PE
};

// The PEs of one machine, and the cores that they may run on together. Also correct if each PE is
// bound to a core of its own.
struct MachineLoad {
  std::uint32_t pes = 0;
  std::uint32_t cores = 0;
};

class Membership {
 public:
  // Collective. Throws Error (Mismatch) if versions or heap sizes differ, naming the PEs.
  Membership(const Config& config,
             bootstrap::Bootstrap& bootstrap,
             const heap::Heap& heap,
             std::vector<RegionOffer> regions);

  [[nodiscard]] const Member& member(Pe pe) const { return members_[pe.value]; }

  [[nodiscard]] const topology::NodePlace& place(Pe pe) const { return places_[pe.value]; }

  [[nodiscard]] std::uint32_t node_count() const;
  // The PEs that share this machine's cores, even if WEFT_NODE_SIZE or a lab splits it into several
  // nodes.
  [[nodiscard]] MachineLoad machine() const;
  // This PE's index among them, in PE order.
  [[nodiscard]] std::uint32_t machine_pe() const;
  // By PE: the lowest PE of its machine.
  [[nodiscard]] std::vector<std::uint32_t> machines() const;
  // By PE: whether it shares this PE's node.
  [[nodiscard]] std::vector<bool> locals() const;
  // By PE: the number of its node.
  [[nodiscard]] std::vector<std::uint32_t> nodes() const;
  // By PE.
  [[nodiscard]] std::vector<heap::SegmentOffer> offers() const;
  // The same for region `index` of Member::regions.
  [[nodiscard]] std::vector<heap::SegmentOffer> offers_of_region(std::size_t index) const;
  // A PE whose regions differ from those of PE 0; empty if there is none.
  [[nodiscard]] std::optional<Pe> stranger() const;

 private:
  Pe me_;
  std::vector<Member> members_;
  std::vector<topology::NodePlace> places_;
};

// Encodes a Member as bytes and decodes it; throws Error for invalid bytes. Pure.
[[nodiscard]] bootstrap::Blob encode(const Member& member);
[[nodiscard]] Member decode(const bootstrap::Blob& blob, Pe pe);

}  // namespace weft::runtime
