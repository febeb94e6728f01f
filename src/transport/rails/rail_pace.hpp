// How fast a rail of ours is beside the others, told from bursts: by the best average rate that it had from the first
// piece of a burst on to any completion. What waits for a peer whose NIC is busy comes late and does not lower it.
//
// Pure apart from their own state; time is an argument. Called under the transport's lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::transport::rails {

// One rail in one burst.
class RailPace {
 public:
  // `to_new_peer`: the rail has not sent to it before in this burst.
  void on_post(std::uint64_t now_ns, std::uint64_t bytes, bool to_new_peer) {
    peers_ += to_new_peer ? 1 : 0;
    began_ns_ = posted_bytes_ == 0 ? now_ns : began_ns_;
    busy_since_ns_ = done_bytes_ == posted_bytes_ ? now_ns : busy_since_ns_;
    posted_bytes_ += bytes;
  }

  void on_complete(std::uint64_t now_ns, std::uint64_t bytes) {
    count_busy_time(now_ns);
    done_bytes_ += bytes;
    if (done_bytes_ * kEarlyDivisor >= posted_bytes_) {
      best_ = std::max(best_, average());
    }
  }

  // The burst goes on: the average up to the last completion counts.
  void take_average() { best_ = average(); }

  // Begins anew, with the last completion, while the burst goes on. What is left then, when it ends, tells nothing.
  void restart() {
    posted_bytes_ -= std::min(done_bytes_, posted_bytes_);
    done_bytes_ = 0;
    best_ = 0;
    busy_ns_ = 0;
    began_ns_ = busy_since_ns_;
    is_rest_ = true;
  }

  [[nodiscard]] std::uint32_t peers() const { return peers_; }

  [[nodiscard]] std::uint64_t done_bytes() const { return done_bytes_; }

  [[nodiscard]] std::uint64_t posted_bytes() const { return posted_bytes_; }

  [[nodiscard]] bool is_rest() const { return is_rest_; }

  [[nodiscard]] std::uint64_t began_ns() const { return began_ns_; }

  // With something on its way.
  [[nodiscard]] std::uint64_t busy_ns() const { return busy_ns_; }

  [[nodiscard]] double bytes_per_ns() const { return best_; }

 private:
  void count_busy_time(std::uint64_t now_ns) {
    busy_ns_ += now_ns - busy_since_ns_;
    busy_since_ns_ = now_ns;
  }

  [[nodiscard]] double average() const {
    return busy_ns_ == 0 ? 0 : static_cast<double>(done_bytes_) / static_cast<double>(busy_ns_);
  }

  // The first completions come in a bunch: they say little.
  static constexpr std::uint64_t kEarlyDivisor = 2;

  std::uint32_t peers_ = 0;
  std::uint64_t posted_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
  double best_ = 0;
  bool is_rest_ = false;
};

// Below this share of the fastest rail's pace a rail is slow, if it stays there; above the other it is not.
inline constexpr double kSlowBelow = 0.65;
inline constexpr double kEqualAbove = 0.80;
inline constexpr double kWeightMin = 0.02;

// The weight of a rail beside the fastest of its side.
class RailWeight {
 public:
  // A burst is over: `share` is the rail's pace in it, divided by the fastest rail's. Chance makes rails slower,
  // never faster, so the best of several bursts counts.
  void update(double share, const RailPace& pace) {
    now_.add(share, pace);
    if (now_.is_enough()) {
      best_before_ = now_.best;
      now_ = {};
    }
    const double best = std::max(best_before_, now_.best);
    if (share >= kEqualAbove) {
      value_ = 1.0;
    } else if (is_slow()) {
      value_ = std::clamp((value_ + kSmoothing * (best - value_)) * kGrowth, kWeightMin, 1.0);
    } else if (best_before_ > 0 && best < kSlowBelow) {
      value_ = best;
    }
  }

  // The same of a burst in which the rail went to one of several peers, which may be the slow one. So the rail is only
  // suspected, until the rails have been shifted and it is as slow with another peer.
  void update_lone(double share, const RailPace& pace) {
    if (share >= kEqualAbove || is_slow()) {
      shifts_ = 0;
      is_suspected_ = false;
      update(share, pace);
      return;
    }
    lone_.add(share, pace);
    if (!lone_.is_enough()) {
      return;
    }
    if (lone_.best < kSlowBelow && shifts_ > 0) {
      value_ = lone_.best;
    } else {
      is_suspected_ = lone_.best < kSlowBelow;
    }
    lone_ = {};
  }

  [[nodiscard]] bool is_suspected() const { return is_suspected_; }

  void on_shift() {
    shifts_ = is_suspected_ ? shifts_ + 1 : 0;
    is_suspected_ = false;
    lone_ = {};
  }

  // What the PE says whose rail it is.
  void set(double value) { value_ = std::clamp(value, kWeightMin, 1.0); }

  // Nothing was learnt for a while, because a slow rail gets little or nothing: it is tried with more.
  void forget() { value_ = std::min(1.0, value_ * kForgetting); }

  // 1 for a rail as fast as the others, or of which too little is known.
  [[nodiscard]] double value() const { return value_; }

  [[nodiscard]] bool is_slow() const { return value_ < 1; }

 private:
  // The best share of some bursts. Four tell, or two long ones.
  struct Evidence {
    static constexpr std::uint32_t kEnough = 4;
    static constexpr std::uint64_t kLongNs = 100'000'000;

    double best = 0;
    std::uint32_t count = 0;

    void add(double share, const RailPace& pace) {
      best = std::max(best, share);
      count += pace.busy_ns() < kLongNs ? 1 : 2;
    }

    [[nodiscard]] bool is_enough() const { return count >= kEnough; }
  };

  static constexpr double kSmoothing = 0.5;
  // Rails that carry the less the slower they look are done together whatever they could do: a little more each
  // time shows what they can.
  static constexpr double kGrowth = 1.002;
  static constexpr double kForgetting = 2.0;

  double value_ = 1.0;
  Evidence now_;
  double best_before_ = 0;
  Evidence lone_;             // of bursts in which the rail went to one of several peers
  std::uint32_t shifts_ = 0;  // since it was first suspected
  bool is_suspected_ = false;
};

}  // namespace weft::transport::rails
