// The way of an operation's data from one NIC to another: whether it is there, when a cell may
// leave, and when it has arrived. Counts what the NICs carry.
//
// Threads: any, of any process; the NICs' clocks and counters are the only state.
#pragma once

#include <cstdint>

#include "loom/src/persona.hpp"
#include "loom/src/segment.hpp"

namespace loom {

class Route {
 public:
  Route(Segment& segment, std::uint32_t sender, std::uint32_t receiver);

  [[nodiscard]] bool is_cut() const;
  // Operations that fail, per million.
  [[nodiscard]] std::uint32_t error_rate() const;
  // The sender is free at `now` for something posted at `posted_ns`, and the receiver's queue is
  // short.
  [[nodiscard]] bool may_depart(std::uint64_t posted_ns, std::uint64_t now) const;
  // Of a cell with a full payload; about 10 us of the NICs' rate, at most 16 KiB.
  [[nodiscard]] std::uint64_t cell_bytes() const;
  // Takes time of both NICs. Returns when the cell has arrived.
  std::uint64_t send_cell(std::uint64_t bytes, std::uint64_t posted_ns);

 private:
  [[nodiscard]] std::uint64_t receive_ns(std::uint64_t bytes, std::uint64_t now);

  Segment& segment_;
  Nic& sender_;
  Nic& receiver_;
  std::uint32_t sender_index_;
};

}  // namespace loom
