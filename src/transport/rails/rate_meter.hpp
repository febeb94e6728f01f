// How fast a rail completes while it has work: bytes over busy time, smoothed. Idle time does not
// count, so a rail that is seldom used is not taken for a slow one.
//
// Pure apart from its own state; time is an argument. Called under the transport's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace weft::transport::rails {

class RateMeter {
 public:
  void on_post(std::uint64_t now_ns, std::uint64_t bytes) {
    if (outstanding_bytes_ == 0) {
      busy_since_ns_ = now_ns;
    }
    outstanding_bytes_ += bytes;
  }

  void on_complete(std::uint64_t now_ns, std::uint64_t bytes) {
    outstanding_bytes_ -= std::min(bytes, outstanding_bytes_);
    sample_ns_ += now_ns - busy_since_ns_;
    busy_since_ns_ = now_ns;
    sample_bytes_ += bytes;
    if (sample_ns_ >= kSampleNs && sample_bytes_ >= kSampleBytes) {
      close_sample();
    }
  }

  // The operation failed: its bytes are gone, its time says nothing.
  void on_failure(std::uint64_t bytes) {
    outstanding_bytes_ -= std::min(bytes, outstanding_bytes_);
  }

  [[nodiscard]] std::uint64_t outstanding_bytes() const { return outstanding_bytes_; }

  // 0 until the first sample is closed.
  [[nodiscard]] double bytes_per_s() const { return bytes_per_s_; }

 private:
  static constexpr std::uint64_t kSampleNs = 40'000'000;
  static constexpr std::uint64_t kSampleBytes = 128U << 10U;
  static constexpr double kSmoothing = 0.25;  // weight of the newest sample

  void close_sample() {
    const double rate = static_cast<double>(sample_bytes_) * 1e9 / static_cast<double>(sample_ns_);
    bytes_per_s_ = bytes_per_s_ == 0 ? rate : bytes_per_s_ + kSmoothing * (rate - bytes_per_s_);
    sample_ns_ = 0;
    sample_bytes_ = 0;
  }

  std::uint64_t outstanding_bytes_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t sample_ns_ = 0;
  std::uint64_t sample_bytes_ = 0;
  double bytes_per_s_ = 0;
};

// Rates differ by chance when senders meet on a NIC; only below this share of the fastest is a rail
// called slow. Between the two bounds it keeps what it was called.
inline constexpr double kSlowBelow = 0.65;
inline constexpr double kEqualAbove = 0.80;
inline constexpr double kWeightMin = 0.02;

// The weight of a rail of `rate` beside the fastest of its side; 1 while nothing is known.
[[nodiscard]] inline double weight_of(double rate, double fastest, double previous) {
  if (rate <= 0 || fastest <= 0) {
    return 1.0;
  }
  const double share = rate / fastest;
  if (share >= kEqualAbove || (share > kSlowBelow && previous == 1.0)) {
    return 1.0;
  }
  return std::max(share, kWeightMin);
}

}  // namespace weft::transport::rails
