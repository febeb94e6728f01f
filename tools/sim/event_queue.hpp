// The events of a simulation in the order of their times; events of one time in the order in which
// they were added, so that the same setup gives the same run.
//
// One thread.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace weft::sim {

struct Flight;

enum class EventKind : std::uint8_t {
  Post,       // `index`: the PE
  Sent,       // `bytes` of `flight` have left its NIC
  Passed,     // they have passed the link `hop` between leaves
  Received,   // its target's NIC has taken them
  Completed,  // `flight` is complete at its sender
  Failed,     // `flight` has failed at its sender
  NicFails,   // `index`: the NIC
  Retry,      // `index`: the PE
};

struct Event {
  double ns = 0;
  std::uint64_t order = 0;
  Flight* flight = nullptr;
  std::uint32_t index = 0;
  std::uint32_t bytes = 0;
  EventKind kind = EventKind::Post;
  std::uint8_t hop = 0;
};

class EventQueue {
 public:
  [[nodiscard]] bool is_empty() const { return events_.empty(); }

  [[nodiscard]] double next_ns() const { return events_.top().ns; }

  [[nodiscard]] double now_ns() const { return now_ns_; }

  [[nodiscard]] std::uint64_t count() const { return order_; }

  void add(double ns, Event event) {
    event.ns = ns;
    event.order = order_++;
    events_.push(event);
  }

  // Advances the time to that of the next event.
  Event take() {
    const Event event = events_.top();
    events_.pop();
    now_ns_ = event.ns;
    return event;
  }

  // Nothing happens until then.
  void advance(double ns) { now_ns_ = ns; }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.ns > b.ns || (a.ns == b.ns && a.order > b.order);
    }
  };

  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t order_ = 0;
  double now_ns_ = 0;
};

}  // namespace weft::sim
