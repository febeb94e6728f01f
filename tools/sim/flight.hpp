// What is under way: the operations of PEs, and the pieces of them that NICs carry.
//
// Plain values. A Store owns each of them; a pointer stays valid until it is given back.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "src/transport/rails/state.hpp"

namespace weft::sim {

struct Message {
  std::uint64_t bytes = 0;
  std::uint64_t planned = 0;
  std::uint64_t number = 0;  // operations that its PE accepted before
  std::uint32_t pieces = 0;  // under way
  bool is_planned = false;
  double posted_ns = 0;
  transport::rails::RailSpan span;  // of its last piece
};

struct Flight : transport::rails::Posted {
  Flight() : Posted(transport::rails::PostedKind::Piece) {}

  std::uint32_t source = 0;
  std::uint32_t dest = 0;
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
  std::uint32_t cell_bytes = 0;
  std::uint64_t unsent = 0;
  std::uint64_t unreceived = 0;
  bool has_begun = false;
  bool is_lost = false;    // a NIC on its way is dead
  Flight* next = nullptr;  // of the same connection, in the queue of its NIC
  Message* message = nullptr;
};

template <typename Value>
class Store {
 public:
  Value* take() {
    if (free_.empty()) {
      return &all_.emplace_back();
    }
    Value* const value = free_.back();
    free_.pop_back();
    *value = Value();
    return value;
  }

  void give(Value* value) { free_.push_back(value); }

 private:
  std::deque<Value> all_;
  std::vector<Value*> free_;
};

}  // namespace weft::sim
