// Measures the rate at which a rail completes while it has a backlog. Idle time does not count.
// Neither does the time of small messages, which is only latency. Otherwise a rail that is seldom
// used, or used for barriers only, would look slow (measured: 0.3 of its rate, and an all-to-all at
// half of its throughput).
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

  // The operation failed. Its bytes are no longer outstanding, and its time says nothing about the
  // rate.
  void on_failure(std::uint64_t bytes) {
    outstanding_bytes_ -= std::min(bytes, outstanding_bytes_);
  }

  // The rate of the last complete sample; 0 until there is one.
  [[nodiscard]] double bytes_per_s() const { return bytes_per_s_; }

 private:
  // Long enough that random collisions of senders on a NIC average out.
  static constexpr std::uint64_t kSampleNs = 40'000'000;
  static constexpr std::uint64_t kSampleBytes = 192U << 10U;

  // 16 full batches, the most that Outbox has in flight to one peer.
  static constexpr std::uint64_t kBacklogBytes = 128U << 10U;

  [[nodiscard]] bool is_busy() const { return outstanding_bytes_ >= kBacklogBytes; }

  void close_sample() {
    bytes_per_s_ = static_cast<double>(sample_bytes_) * 1e9 / static_cast<double>(sample_ns_);
    sample_ns_ = 0;
    sample_bytes_ = 0;
  }

  std::uint64_t outstanding_bytes_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t sample_ns_ = 0;
  std::uint64_t sample_bytes_ = 0;
  double bytes_per_s_ = 0;
};

}  // namespace weft::transport::rails
