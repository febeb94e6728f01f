// The transports that a PE may have besides mapped memory: for each, whether the job needs it,
// which PEs it reaches, and how it is created. The runtime knows a transport only through its row
// of transport_kinds.cpp.
//
// Collective: each function gives the same answer, or takes part, on all PEs; one thread of each.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/heap.hpp"
#include "src/runtime/membership.hpp"
#include "src/transport/transport.hpp"

namespace weft::runtime {

// The inputs for creating a transport.
struct TransportSite {
  const Config& config;
  bootstrap::Bootstrap& bootstrap;
  const heap::Heap& heap;
  const Membership& membership;
  bool has_windows = false;  // there are, or will be, regions that no peer maps

  // The memory that peers may access: region 0 is the heap.
  [[nodiscard]] std::vector<std::span<std::byte>> regions() const;
};

struct TransportKind {
  std::string_view name;
  bool (*is_needed)(const TransportSite& site);
  // By PE; only PEs that no other kind reaches.
  std::vector<bool> (*reaches)(const TransportSite& site);
  // May throw Error.
  std::unique_ptr<transport::Transport> (*make)(const TransportSite& site);
  // Whether its progress thread polls for WEFT_SPIN_US before it sleeps.
  bool spins = false;
};

// In the order in which a waiting thread polls them; it sleeps on the events of the last.
[[nodiscard]] std::span<const TransportKind> transport_kinds();

// The rows: cma_kind.cpp and rails_kind.cpp.
extern const TransportKind kCmaKind;
extern const TransportKind kRailsKind;

}  // namespace weft::runtime
