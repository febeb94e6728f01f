// Turns of those who compete for room in one bounded place: rings for a peer's queue, senders for
// the inbox.
//
// Whoever finds no room waits in line. From then on everybody else joins the line's end, and the
// first in line has the next turn, of a few items. So each gets an equal share however often the
// others come (deficit round robin, with items of equal cost: Shreedhar and Varghese, 1996). While
// nobody waits, turns cost one comparison.
//
// Threads: only the proxy's. Nothing allocates after the constructor. Invariant: nobody is in line
// twice.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/proxy/bounded_queue.hpp"

namespace weft::proxy {

class Turns {
 public:
  // The most items of a turn while others wait. Longer turns hold the others up for longer; shorter
  // ones change between rings, whose slots the processor prefetches, more often.
  static constexpr std::uint32_t kItemsPerTurn = 32;

  // For competitors 0 to `count` - 1.
  explicit Turns(std::size_t count) : line_(count), waits_(count, 0) {}

  [[nodiscard]] bool empty() const { return line_.empty(); }

  // True if `who` may add one item now, to a place that has room or not. False: it is in line.
  [[nodiscard]] bool enter(std::uint32_t who, bool has_room) {
    if (who == serving_) {
      const bool may = has_room && (items_left_ > 0 || line_.size() == 1);
      items_left_ -= may && items_left_ > 0 ? 1 : 0;
      wants_more_ = !may;
      return may;
    }
    if (has_room && line_.empty()) {
      return true;
    }
    if (waits_[who] == 0) {
      waits_[who] = 1;
      line_.push() = who;
    }
    return false;
  }

  // Gives turns while somebody waits and there is room. `add(who)` adds what it has, by enter; true
  // if it added anything. True if anybody did. A turn that ends for lack of room goes on in the
  // next call: otherwise those whose turns come last in a pass would get less.
  bool serve(FunctionRef<bool()> has_room, FunctionRef<bool(std::uint32_t)> add) {
    bool moved = false;
    while (!line_.empty() && has_room()) {
      serving_ = line_.front();
      items_left_ = items_left_ == 0 ? kItemsPerTurn : items_left_;
      wants_more_ = false;
      moved = add(serving_) || moved;
      end_turn();
    }
    serving_ = kNobody;
    return moved;
  }

 private:
  static constexpr std::uint32_t kNobody = ~0U;

  // Of the first in line, unless the rest of it is still to come.
  void end_turn() {
    if (wants_more_ && items_left_ > 0) {
      return;
    }
    line_.pop();
    if (wants_more_) {
      line_.push() = serving_;
    } else {
      waits_[serving_] = 0;
      items_left_ = 0;
    }
  }

  BoundedQueue<std::uint32_t> line_;
  std::vector<std::uint8_t> waits_;  // who is in line
  std::uint32_t serving_ = kNobody;
  bool wants_more_ = false;       // it was refused in its turn
  std::uint32_t items_left_ = 0;  // of the turn of the first in line; 0: it has not begun
};

}  // namespace weft::proxy
