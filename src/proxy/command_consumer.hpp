// The proxy's side of one command ring: takes commands in order, tracks which are complete, and
// tells the GPU the position below which all are complete.
//
// Threads: only the proxy's. Invariant: completed <= released <= taken, and taken - completed is at
// most the window. A full window stops taking, so memory is bounded.
#pragma once

#include <cstdint>
#include <vector>

#include "src/proxy/ring_memory.hpp"

namespace weft::proxy {

class CommandConsumer {
 public:
  // `window`: the most commands that may be taken and incomplete; a power of two.
  CommandConsumer(const device::RingView& view, std::uint64_t window)
      : consumer_(view), done_(window, 0) {}

  // True if the next command is available and the window has room.
  [[nodiscard]] bool peek(device::Command& command) const {
    return taken_ - completed_ < done_.size() && consumer_.peek(taken_, command);
  }

  [[nodiscard]] const std::byte* payload() const { return consumer_.payload(taken_); }

  [[nodiscard]] std::uint64_t position() const { return taken_; }

  // Call after copying the command returned by peek, and its payload.
  void take() { ++taken_; }

  // Completes a command, with `value` for a thread that waits for its reply. False if the slot's
  // last reply has not been read yet; then nothing was done.
  [[nodiscard]] bool finish(std::uint64_t position, bool wants_reply, std::uint64_t value) {
    if (wants_reply) {
      if (!consumer_.can_reply(position)) {
        return false;
      }
      consumer_.reply(position, value);
    }
    done_[position & (done_.size() - 1)] = 1;
    return true;
  }

  // Tells the GPU the positions taken and completed since the last call. True if either changed.
  bool publish() {
    const bool has_taken = released_ != taken_;
    if (has_taken) {
      released_ = taken_;
      consumer_.release_below(released_);
    }
    const std::uint64_t before = completed_;
    while (completed_ < taken_ && done_[completed_ & (done_.size() - 1)] != 0) {
      done_[completed_ & (done_.size() - 1)] = 0;
      ++completed_;
    }
    if (completed_ != before) {
      consumer_.complete_below(completed_);
    }
    return has_taken || completed_ != before;
  }

  [[nodiscard]] bool is_idle() const { return completed_ == taken_; }

 private:
  device::RingConsumer<HostMemory> consumer_;
  std::vector<std::uint8_t> done_;  // indexed by position modulo the window
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t completed_ = 0;
};

}  // namespace weft::proxy
