// The NICs of all PEs and the links between leaf switches: servers with queues. A piece is divided
// into cells. A sending NIC takes a cell of each connection in turn, or one piece after the other;
// links and receiving NICs take cells in the order of arrival. Nothing holds a sender back.
//
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/sim/event_queue.hpp"
#include "tools/sim/flight.hpp"
#include "tools/sim/moments.hpp"
#include "tools/sim/setup.hpp"

namespace weft::sim {

// What a NIC has done in one direction so far.
struct Work {
  std::uint64_t bytes = 0;
  double busy_ns = 0;
};

class Network {
 public:
  // Both must outlive it.
  Network(const Setup& setup, EventQueue& events);

  // The piece is in the queue of its sending NIC now. It ends with an event Completed or Failed.
  void send(Flight& flight);
  // Events Sent, Passed, Received and NicFails.
  void on_event(const Event& event);

  [[nodiscard]] std::uint32_t nic_index(std::uint32_t pe, std::uint32_t nic) const {
    return first_nic_[pe] + nic;
  }

  // bytes/ns of a NIC, with what --slow leaves.
  [[nodiscard]] double rate(std::uint32_t nic) const { return 1 / tx_[nic].ns_per_byte; }

  [[nodiscard]] bool is_dead(std::uint32_t nic) const { return tx_[nic].is_dead; }

  [[nodiscard]] std::size_t nic_count() const { return tx_.size(); }

  [[nodiscard]] const Work& sent(std::uint32_t nic) const { return tx_[nic].work; }

  [[nodiscard]] const Work& received(std::uint32_t nic) const { return rx_[nic].work; }

  [[nodiscard]] const std::vector<Work>& uplinks() const { return up_work_; }

  [[nodiscard]] const std::vector<Work>& downlinks() const { return down_work_; }

  [[nodiscard]] std::uint64_t rx_queue_max() const { return rx_queue_max_; }

  // What NICs carry in short intervals, from begin() of each on.
  [[nodiscard]] Moments& tx_moments() { return tx_moments_; }

  [[nodiscard]] Moments& rx_moments() { return rx_moments_; }

 private:
  struct Cell {
    Flight* flight = nullptr;
    std::uint32_t bytes = 0;
  };

  struct Tx {
    std::deque<Flight*> heads;                         // of the connections, in turn
    std::unordered_map<std::uint64_t, Flight*> tails;  // by connection
    double ns_per_byte = 0;
    bool is_busy = false;
    bool is_dead = false;
    Work work;
  };

  struct Rx {
    std::deque<Cell> cells;
    std::uint64_t queued = 0;
    double ns_per_byte = 0;
    bool is_busy = false;
    Work work;
  };

  // Of a leaf, to the others or from them.
  struct Link {
    double free_ns = 0;
    double ns_per_byte = 0;
  };

  void build_leaves();
  [[nodiscard]] std::uint32_t leaf_of(std::uint32_t pe, std::uint32_t nic) const;
  [[nodiscard]] std::uint64_t connection_of(const Flight& flight) const;
  void drop_head(Tx& tx);
  void start_tx(std::uint32_t nic);
  void on_sent(const Event& event);
  void forward(const Cell& cell, std::uint8_t hop);
  void start_rx(std::uint32_t nic);
  void on_received(const Event& event);
  void lose(Flight& flight);
  void on_nic_fails(std::uint32_t nic);

  const Setup& setup_;
  EventQueue& events_;
  std::vector<std::uint32_t> first_nic_;  // by PE
  std::vector<Tx> tx_;
  std::vector<Rx> rx_;
  std::vector<Link> up_;
  std::vector<Link> down_;
  std::vector<Work> up_work_;
  std::vector<Work> down_work_;
  std::uint64_t rx_queue_max_ = 0;
  Moments tx_moments_;
  Moments rx_moments_;
};

}  // namespace weft::sim
