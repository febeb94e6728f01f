// The transports of a PE, and the one that reaches each peer: rma posts to it. Peers whose memory
// is mapped here need none.
//
// Threads: any; call `add` only while no other thread uses this object. The transports outlive it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/transport/transport.hpp"

namespace weft::transport {

class Routes {
 public:
  explicit Routes(std::uint32_t pe_count) : by_pe_(pe_count, nullptr) {}

  // `transport`, and no other, reaches the PEs for which `reached` is true.
  void add(Transport& transport, const std::vector<bool>& reached) {
    transports_.push_back(&transport);
    for (std::size_t pe = 0; pe < reached.size(); ++pe) {
      if (reached[pe]) {
        by_pe_[pe] = &transport;
      }
    }
  }

  // Whether all memory of all PEs is mapped here.
  [[nodiscard]] bool empty() const { return transports_.empty(); }

  // Null if no transport reaches `peer`.
  [[nodiscard]] Transport* find(Pe peer) const { return by_pe_[peer.value]; }

  // For a peer that a transport reaches.
  [[nodiscard]] Transport& to(Pe peer) const { return *by_pe_[peer.value]; }

  [[nodiscard]] Status peer_status(Pe peer) const {
    const Transport* transport = find(peer);
    return transport == nullptr ? Status::Ok : transport->peer_status(peer);
  }

  [[nodiscard]] std::uint64_t moved(Pe peer) const {
    const Transport* transport = find(peer);
    return transport == nullptr ? 0 : transport->moved(peer);
  }

  // ---- Applied to all transports.

  [[nodiscard]] bool progress() const {
    bool moved = false;
    for (Transport* transport : transports_) {
      moved = transport->progress() || moved;
    }
    return moved;
  }

  // A thread cannot wait for events of several transports at once. So it sleeps on the last and
  // polls the others often.
  [[nodiscard]] bool wait_for_event(std::uint32_t timeout_us) const {
    constexpr std::uint32_t kLookUs = 200;
    return transports_.back()->wait_for_event(
        transports_.size() == 1 ? timeout_us : std::min(timeout_us, kLookUs));
  }

  void begin_wait() const {
    for (Transport* transport : transports_) {
      transport->begin_wait();
    }
  }

  void end_wait() const {
    for (Transport* transport : transports_) {
      transport->end_wait();
    }
  }

 private:
  std::vector<Transport*> transports_;
  std::vector<Transport*> by_pe_;
};

}  // namespace weft::transport
