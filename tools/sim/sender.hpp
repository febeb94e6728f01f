// What decides over which rails the operations of a PE go, and posts their pieces to the network.
//
// One thread. Implementations: WeftSender has Weft's planner, CountingSender NVSHMEM's rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/sim/event_queue.hpp"
#include "tools/sim/flight.hpp"
#include "tools/sim/network.hpp"
#include "tools/sim/setup.hpp"

namespace weft::sim {

// What senders share. The members must outlive them.
struct Site {
  const Setup& setup;
  EventQueue& events;
  Network& network;
  Store<Flight>& flights;
};

class Sender {
 public:
  Sender() = default;
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  virtual ~Sender() = default;

  // The caller begins to post after a quiet.
  virtual void begin_window() = 0;
  // An operation to a PE of another node.
  virtual void accept(std::uint32_t to, Message& message) = 0;
  // A piece is complete. True if its message is, too.
  virtual bool on_completed(Flight& flight) = 0;
  // A piece has failed: a NIC on its way is dead.
  virtual void on_failed(Flight& flight) = 0;
  // An event Retry of this PE.
  virtual void on_retry() = 0;
  // Every few tens of milliseconds.
  virtual void tick() = 0;

  [[nodiscard]] virtual std::uint32_t slow_rails() const = 0;
  [[nodiscard]] virtual std::uint32_t links_down() const = 0;
  // For whom its operations wait, in words; empty: nobody.
  [[nodiscard]] virtual std::string waits_for() const = 0;
};

[[nodiscard]] std::unique_ptr<Sender> make_counting_sender(const Site& site, std::uint32_t me);

// All PEs of the job. `peers`: of each PE, those to which it may send.
[[nodiscard]] std::vector<std::unique_ptr<Sender>> make_weft_senders(
    const Site& site, const std::vector<std::vector<std::uint32_t>>& peers);

// Bytes of memory that one PE needs for a peer that it may send to, about.
inline constexpr double kPeerStateBytes = 8000;

}  // namespace weft::sim
