// The proxy's seams to a "GPU" that does nothing by itself: the test says when copies go on, and
// counts.
//
// Threads: the test's one.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <functional>

#include "src/proxy/copier.hpp"

namespace weft::test {

// Copies when it is told to.
class ManualCopier final : public proxy::Copier {
 public:
  Ticket copy(proxy::CopyDirection direction,
              void* dest,
              const void* source,
              std::size_t bytes) noexcept override {
    Side& side = sides_[static_cast<std::size_t>(direction)];
    side.waiting.push_back({dest, source, bytes});
    ++side.issued;
    if (!side.held) {
      go_on(direction);
    }
    return side.issued;
  }

  [[nodiscard]] bool is_done(proxy::CopyDirection direction, Ticket ticket) noexcept override {
    return sides_[static_cast<std::size_t>(direction)].done >= ticket;
  }

  // From now on copies wait for go_on.
  void hold(proxy::CopyDirection direction) {
    sides_[static_cast<std::size_t>(direction)].held = true;
  }

  void go_on(proxy::CopyDirection direction) {
    Side& side = sides_[static_cast<std::size_t>(direction)];
    for (const Copy& copy : side.waiting) {
      std::memcpy(copy.dest, copy.source, copy.bytes);
      ++side.done;
    }
    side.waiting.clear();
  }

  void show_nic_writes() noexcept override {
    ++shows;
    if (meanwhile) {
      meanwhile();
    }
  }

  // How often NICs' writes were shown to the "GPU".
  int shows = 0;
  // What happens behind it, before the proxy goes on.
  std::function<void()> meanwhile;

  // All that were ever asked for.
  [[nodiscard]] std::uint64_t issued(proxy::CopyDirection direction) const {
    return sides_[static_cast<std::size_t>(direction)].issued;
  }

  [[nodiscard]] std::size_t waiting(proxy::CopyDirection direction) const {
    return sides_[static_cast<std::size_t>(direction)].waiting.size();
  }

 private:
  struct Copy {
    void* dest;
    const void* source;
    std::size_t bytes;
  };

  struct Side {
    std::deque<Copy> waiting;
    Ticket issued = 0;
    Ticket done = 0;
    bool held = false;
  };

  std::array<Side, 2> sides_;
};

class CountingApplier final : public proxy::Applier {
 public:
  void wake_applier() noexcept override { ++wakes; }

  int wakes = 0;
};

}  // namespace weft::test
