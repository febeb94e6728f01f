// How fast a rail completes while it has a backlog: bytes over that time, sampled. Idle time does not count, nor
// does the time of messages, which is their latency: a rail that is seldom used, or used for barriers, is not
// taken for a slow one (measured: 0.3 of its rate, and the all-to-all at half).
//
// Pure apart from its own state; time is an argument. Called under the transport's lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::transport::rails {

class RateMeter {
 public:
  void on_post(std::uint64_t now_ns, std::uint64_t bytes) {
    if (!is_busy() && outstanding_bytes_ + bytes >= kBacklogBytes) {
      busy_since_ns_ = now_ns;
    }
    outstanding_bytes_ += bytes;
  }

  void on_complete(std::uint64_t now_ns, std::uint64_t bytes) {
    if (is_busy()) {
      sample_ns_ += now_ns - busy_since_ns_;
      busy_since_ns_ = now_ns;
      sample_bytes_ += bytes;
    }
    outstanding_bytes_ -= std::min(bytes, outstanding_bytes_);
    if (sample_ns_ >= kSampleNs && sample_bytes_ >= kSampleBytes) {
      close_sample();
    }
  }

  // The operation failed: its bytes are gone, its time says nothing.
  void on_failure(std::uint64_t bytes) {
    outstanding_bytes_ -= std::min(bytes, outstanding_bytes_);
  }

  [[nodiscard]] std::uint64_t outstanding_bytes() const { return outstanding_bytes_; }

  // Of the last full sample; 0 until there is one.
  [[nodiscard]] double bytes_per_s() const { return bytes_per_s_; }

  // Samples closed so far: tells a new figure from one that was seen before.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }

 private:
  // Long enough that senders who meet on a NIC by chance even out.
  static constexpr std::uint64_t kSampleNs = 40'000'000;
  static constexpr std::uint64_t kSampleBytes = 192U << 10U;

  // More than one message of ours: see Outbox.
  static constexpr std::uint64_t kBacklogBytes = 128U << 10U;

  [[nodiscard]] bool is_busy() const { return outstanding_bytes_ >= kBacklogBytes; }

  void close_sample() {
    bytes_per_s_ = static_cast<double>(sample_bytes_) * 1e9 / static_cast<double>(sample_ns_);
    ++samples_;
    sample_ns_ = 0;
    sample_bytes_ = 0;
  }

  std::uint64_t outstanding_bytes_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t sample_ns_ = 0;
  std::uint64_t sample_bytes_ = 0;
  std::uint64_t samples_ = 0;
  double bytes_per_s_ = 0;
};

// What it takes to call a rail slow. Rates differ by chance when senders meet on a NIC, so a rail has
// to stay below the bound for several samples in a row, or bursts; it is slow until it is above kEqualAbove.
struct SlowBound {
  double below = 0.65;
  std::uint32_t samples = 5;
  std::uint32_t bursts = 16;
};

// A peer's rail is seen through our own queues and those of others: it has to stay slow for longer. But one that is
// late at the end of bursts makes late the rail of ours that it is paired with, so it is the first to be suspected.
inline constexpr SlowBound kPeerSlowBound{.below = 0.65, .samples = 8, .bursts = 8};
inline constexpr double kEqualAbove = 0.80;
inline constexpr double kWeightMin = 0.02;

// The weight of a rail beside the fastest of its side, from one sample to the next.
class RailWeight {
 public:
  RailWeight() = default;

  explicit RailWeight(SlowBound bound) : bound_(bound) {}

  // `rate` is a new sample of this rail, `fastest` the highest of its side now.
  void update(double rate, double fastest) {
    if (rate <= 0 || fastest <= 0) {
      return;
    }
    const double share = rate / fastest;
    slow_samples_ = share < bound_.below ? slow_samples_ + 1 : 0;
    if (share >= kEqualAbove) {
      value_ = 1.0;
    } else if (value_ < 1.0 || slow_samples_ >= bound_.samples) {
      value_ += value_ == 1.0 ? share - value_ : kSmoothing * (share - value_);
      value_ = std::max(value_, kWeightMin);
    }
  }

  // Only by a burst that is over: `share` is the time that the quickest rail took for about the same bytes,
  // divided by this one's.
  void update_by_burst(double share) {
    slow_bursts_ = share < bound_.below ? slow_bursts_ + 1 : 0;
    if (share >= kEqualAbove) {
      value_ = 1.0;
    } else if (slow_bursts_ >= bound_.bursts) {
      value_ = std::max(share, kWeightMin);
    }
  }

  // Another rail was the slow one.
  void acquit() {
    value_ = 1.0;
    slow_samples_ = slow_bursts_ = 0;
  }

  // Nothing was learnt for a while, because a slow rail gets little or nothing: it is tried with more.
  void forget() { value_ = std::min(1.0, value_ * kForgetting); }

  // 1 for a rail as fast as the others, or of which too little is known.
  [[nodiscard]] double value() const { return value_; }

  [[nodiscard]] bool is_slow() const { return value_ < 1; }

 private:
  static constexpr double kSmoothing = 0.3;
  static constexpr double kForgetting = 2.0;

  SlowBound bound_;
  double value_ = 1.0;
  std::uint32_t slow_samples_ = 0;
  std::uint32_t slow_bursts_ = 0;
};

}  // namespace weft::transport::rails
