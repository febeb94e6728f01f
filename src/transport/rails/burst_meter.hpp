// How much a PE posts before it waits: the bytes from one moment at which nothing is in flight to the next. If all
// is done while the PE goes on posting, as on a busy machine that takes its core away, that is the same burst.
// What bursts were so far tells what this one will be, and so whether one message has all rails for itself or
// shares them with messages that are still to come.
//
// Pure apart from its own state; called under the transport's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weft::transport::rails {

// When an operation was accepted, and how often callers had polled until then.
struct PostMoment {
  std::uint64_t now_ns = 0;
  std::uint64_t caller_polls = 0;
};

class BurstMeter {
 public:
  // An operation was accepted: towards its peer, or waiting to be planned. `large_bytes`: those of it that
  // count as work to be shared; 0 for what is too small to matter.
  void on_accepted(std::uint64_t large_bytes, PostMoment moment) {
    if (open_operations_ == 0) {
      if (!goes_on(moment)) {
        begin();
      }
      busy_since_ns_ = moment.now_ns;
    }
    caller_polls_ = moment.caller_polls;
    ++open_operations_;
    if (large_bytes > 0) {
      const bool was_alone = accepted_bytes_ == 0 && last_large_count_ == 1;
      const bool differs = large_bytes != operation_bytes_;
      is_mixed_ = is_mixed_ || (differs && (accepted_bytes_ > 0 || was_alone));
      operation_bytes_ = large_bytes;
      ++large_count_;
    }
    accepted_bytes_ += large_bytes;
  }

  // A piece of a large one was handed to a rail.
  void on_planned(std::uint64_t bytes) { planned_bytes_ += bytes; }

  // An accepted operation is complete, or has failed.
  void on_finished(std::uint64_t now_ns) {
    --open_operations_;
    idle_since_ns_ = now_ns;
  }

  // Bursts so far: tells one from the next.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // Whether the large operations of this burst, and of the one before, have one size. Where bursts are single
  // operations, these two.
  [[nodiscard]] bool is_regular() const { return !is_mixed_ && !was_mixed_; }

  // What the shortest of the last bursts had; 0 if there was none.
  [[nodiscard]] std::uint64_t usual_bytes() const {
    const auto known = std::span(lengths_).first(std::min(count_, kRemembered));
    return known.empty() ? 0 : *std::ranges::min_element(known);
  }

  // Bytes of this burst that are not with a rail yet, as far as one can tell. The smallest of the last
  // bursts counts: to take one message for the first of many leaves rails idle, and to take one of many for
  // the only one costs little. The first burst, and one that is longer than those before, has hardly
  // begun: its operations are not cut.
  [[nodiscard]] std::uint64_t expected_bytes() const {
    const std::uint64_t usual = usual_bytes();
    const std::uint64_t total = accepted_bytes_ <= usual ? usual : kLonger * accepted_bytes_;
    return total - std::min(total, planned_bytes_);
  }

 private:
  static constexpr std::size_t kRemembered = 4;
  static constexpr std::uint64_t kPauseMax = 2;
  // So much that each of 32 rails has room for a whole operation of the size of those so far.
  static constexpr std::uint64_t kLonger = 32;

  // Nobody has waited since the last operation, and the pause is not long beside the time before it in which something was
  // in flight. (Seen with 8 PEs on 2 cores: up to 1.0 of it.)
  [[nodiscard]] bool goes_on(PostMoment moment) const {
    return accepted_bytes_ > 0 && moment.caller_polls == caller_polls_ &&
           moment.now_ns - idle_since_ns_ <= kPauseMax * (idle_since_ns_ - busy_since_ns_);
  }

  void begin() {
    ++number_;
    if (accepted_bytes_ > 0) {
      was_mixed_ = is_mixed_;
      is_mixed_ = false;
      lengths_[count_++ % kRemembered] = accepted_bytes_;
      last_large_count_ = std::exchange(large_count_, 0U);
    }
    accepted_bytes_ = 0;
    planned_bytes_ = 0;
  }

  std::uint64_t open_operations_ = 0;
  std::uint64_t caller_polls_ = 0;  // when the last operation was accepted
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t accepted_bytes_ = 0;  // since the burst began
  std::uint64_t planned_bytes_ = 0;
  std::uint64_t operation_bytes_ = 0;  // of the last large one
  std::uint64_t large_count_ = 0;      // of large operations in this burst, and in the one before
  std::uint64_t last_large_count_ = 0;
  bool is_mixed_ = false;
  bool was_mixed_ = false;
  std::uint64_t number_ = 0;
  std::array<std::uint64_t, kRemembered> lengths_{};  // of the last bursts with large operations
  std::size_t count_ = 0;                             // of those
};

}  // namespace weft::transport::rails
