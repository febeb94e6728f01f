// A burst: what a PE posts from one moment at which nothing is in flight to the next. If everything
// completes while the PE is still posting, the burst continues; that happens on an oversubscribed
// machine, where the PE loses its core. The length of past bursts predicts the length of this one.
// The planner needs that to decide whether one operation is split over all rails, or shares the
// rails with operations that are still to come.
//
// Pure apart from its own state. Called under the transport's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weft::transport::rails {

// When an operation was accepted, and how many times callers had polled by then.
struct PostMoment {
  std::uint64_t now_ns = 0;
  std::uint64_t caller_polls = 0;
};

class BurstMeter {
 public:
  // Call when an operation was accepted, whether it is planned at once or queued. `large_bytes`:
  // its size if it is large enough to be split, else 0.
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

  // Call when a piece of a large operation was posted on a rail.
  void on_planned(std::uint64_t bytes) { planned_bytes_ += bytes; }

  // Call when an accepted operation has completed or failed.
  void on_finished(std::uint64_t now_ns) {
    --open_operations_;
    idle_since_ns_ = now_ns;
  }

  // The number of bursts so far, which identifies the current one.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // Whether all large operations of this burst, and all of the previous one, have the same size. If
  // a burst is a single operation, it is compared with the previous burst's.
  [[nodiscard]] bool is_regular() const { return !is_mixed_ && !was_mixed_; }

  // The bytes of the shortest of the last four bursts that had large operations; 0 if there was
  // none.
  [[nodiscard]] std::uint64_t usual_bytes() const {
    const auto known = std::span(lengths_).first(std::min(count_, kRemembered));
    return known.empty() ? 0 : *std::ranges::min_element(known);
  }

  // Whether operations of this burst wait for room on a rail.
  [[nodiscard]] bool has_unplanned() const { return planned_bytes_ < accepted_bytes_; }

  // An estimate of the bytes of this burst that are not posted yet. It uses the shortest of the
  // last bursts: to mistake a lone operation for the first of many leaves rails idle, while the
  // opposite mistake costs little. The first burst, and one that already exceeds the previous ones,
  // is expected to continue for long, so its operations are not split.
  [[nodiscard]] std::uint64_t expected_bytes() const {
    const std::uint64_t usual = usual_bytes();
    const std::uint64_t total = accepted_bytes_ <= usual ? usual : kLonger * accepted_bytes_;
    return total - std::min(total, planned_bytes_);
  }

 private:
  static constexpr std::size_t kRemembered = 4;
  static constexpr std::uint64_t kPauseMax = 2;
  // Large enough that each of 32 rails could take a whole operation as large as all of those so
  // far.
  static constexpr std::uint64_t kLonger = 32;

  // True if nobody has waited since the last operation, and the pause is at most kPauseMax times as
  // long as the time before it in which something was in flight. (With 8 PEs on 2 cores, pauses of
  // up to 1.0 times that were measured.)
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
  std::uint64_t operation_bytes_ = 0;  // of the last large operation
  std::uint64_t large_count_ = 0;      // large operations in this burst, and in the previous one
  std::uint64_t last_large_count_ = 0;
  bool is_mixed_ = false;
  bool was_mixed_ = false;
  std::uint64_t number_ = 0;
  std::array<std::uint64_t, kRemembered>
      lengths_{};          // bytes of the last bursts with large operations
  std::size_t count_ = 0;  // such bursts so far
};

}  // namespace weft::transport::rails
