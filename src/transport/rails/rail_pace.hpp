// How fast a rail of ours is beside the others, told from bursts: by the best average rate that it had from the first
// piece of a burst on to any completion. What waits for a peer whose NIC is busy comes late and does not lower it.
//
// Pure apart from their own state; time is an argument. Called under the transport's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

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
    remember({.done_bytes = done_bytes_, .busy_ns = busy_ns_});
  }

  // Begins anew, with the last completion, while the burst goes on. What is left then, when it ends, tells nothing.
  void restart() {
    posted_bytes_ -= std::min(done_bytes_, posted_bytes_);
    done_bytes_ = 0;
    count_ = 0;
    apart_bytes_ = 0;
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

  // The best average up to a completion with which half of `bytes` or more were done, until all of them were; 0 if it did
  // not come so far. Rails compare at the same bytes: what a NIC lets through at once counts less the longer it is used.
  [[nodiscard]] double best_average(std::uint64_t bytes) const {
    double best = 0;
    for (const Moment& moment : std::span(moments_).first(count_)) {
      if (moment.done_bytes * kEarlyDivisor >= bytes) {
        best = std::max(best, moment.average());
      }
      if (moment.done_bytes >= bytes) {
        break;
      }
    }
    return best;
  }

  // Up to the last completion.
  [[nodiscard]] double average() const {
    return Moment{.done_bytes = done_bytes_, .busy_ns = busy_ns_}.average();
  }

 private:
  // A completion: what was done with it.
  struct Moment {
    std::uint64_t done_bytes = 0;
    std::uint64_t busy_ns = 0;

    [[nodiscard]] double average() const {
      return busy_ns == 0 ? 0 : static_cast<double>(done_bytes) / static_cast<double>(busy_ns);
    }
  };

  void count_busy_time(std::uint64_t now_ns) {
    busy_ns_ += now_ns - busy_since_ns_;
    busy_since_ns_ = now_ns;
  }

  // All of a short burst, of a longer one every second, fourth, and so on.
  void remember(const Moment& now) {
    const bool is_close =
        count_ > 1 && now.done_bytes - moments_[count_ - 2].done_bytes <= apart_bytes_;
    if (is_close) {
      moments_[count_ - 1] = now;
      return;
    }
    if (count_ == moments_.size()) {
      count_ /= 2;
      for (std::size_t i = 0; i < count_; ++i) {
        moments_[i] = moments_[2 * i + 1];
      }
      apart_bytes_ = 2 * std::max(apart_bytes_, moments_[0].done_bytes / 2);
    }
    moments_[count_++] = now;
  }

  // The first completions come in a bunch: they say little.
  static constexpr std::uint64_t kEarlyDivisor = 2;

  std::uint32_t peers_ = 0;
  std::uint64_t posted_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
  bool is_rest_ = false;
  std::array<Moment, 16> moments_{};
  std::size_t count_ = 0;          // of them
  std::uint64_t apart_bytes_ = 0;  // so much lies between two of them, or more
};

// Below this share of the fastest rail's pace a rail is late, and slow if it stays there; above the other it is not.
inline constexpr double kSlowBelow = 0.65;
inline constexpr double kEqualAbove = 0.80;
inline constexpr double kWeightMin = 0.02;

// How often a rail was late in the last bursts: the older, the less they count.
class Lateness {
 public:
  void add(bool is_late) {
    late_ = late_ * kKept + (is_late ? 1 : 0);
    seen_ = seen_ * kKept + 1;
  }

  void add(const Lateness& other) {
    late_ += other.late_;
    seen_ += other.seen_;
  }

  [[nodiscard]] double late() const { return late_; }

  [[nodiscard]] double seen() const { return seen_; }

 private:
  static constexpr double kKept = 1 - 1.0 / 32;

  double late_ = 0;
  double seen_ = 0;
};

// Late bursts in a row that are not chance: so many that a rail like `others`, of which none is slow, hardly ever
// has them. 4 at first and where nothing is ever late, 10 where every second burst is, as on a machine with too few cores.
[[nodiscard]] inline std::uint32_t late_bursts_that_tell(const Lateness& others) {
  constexpr double kChance = 1e-4;
  constexpr double kPriorLate = 1;
  constexpr double kPriorSeen = 10;
  constexpr double kOftenMax = 0.8;
  constexpr std::uint32_t kNeededMin = 4;
  const double often =
      std::min((kPriorLate + others.late()) / (kPriorSeen + others.seen()), kOftenMax);
  constexpr double kRounding = 1e-9;
  const double needed = std::ceil(std::log(kChance) / std::log(often) - kRounding);
  return std::max(static_cast<std::uint32_t>(needed), kNeededMin);
}

// The weight of a rail beside the fastest of its side.
class RailWeight {
 public:
  // A burst is over: `share` is the rail's pace in it, divided by the fastest rail's. `needed` late ones in a row
  // make it a slow one. Chance makes rails slower, never faster, so the best of several bursts counts.
  void update(double share, const RailPace& pace, std::uint32_t needed) {
    count_lateness(share);
    if (share >= kEqualAbove) {
      become(1.0);
    } else if (is_slow()) {
      follow(share, pace);
    } else if (row_.goes_on_with(share, pace, needed)) {
      become(row_.best);
    }
  }

  // The same of a burst in which the rail went to one of several peers, which may be the slow one. So the rail is only
  // suspected, until the rails have been shifted and it is as slow with another peer.
  void update_lone(double share, const RailPace& pace, std::uint32_t needed) {
    if (share >= kEqualAbove || is_slow()) {
      shifts_ = 0;
      is_suspected_ = false;
      update(share, pace, needed);
      return;
    }
    count_lateness(share);
    if (!lone_row_.goes_on_with(share, pace, needed)) {
      is_suspected_ = is_suspected_ && share < kSlowBelow;
    } else if (shifts_ > 0) {
      become(lone_row_.best);
    } else {
      is_suspected_ = true;
    }
  }

  [[nodiscard]] bool is_suspected() const { return is_suspected_; }

  void on_shift() {
    shifts_ = is_suspected_ ? shifts_ + 1 : 0;
    is_suspected_ = false;
    lone_row_ = {};
  }

  // What the PE says whose rail it is.
  void set(double value) { value_ = std::clamp(value, kWeightMin, 1.0); }

  // Nothing was learnt for a while, because a slow rail gets little or nothing: it is tried with more.
  void forget() { value_ = std::min(1.0, value_ * kForgetting); }

  // 1 for a rail as fast as the others, or of which too little is known.
  [[nodiscard]] double value() const { return value_; }

  [[nodiscard]] bool is_slow() const { return value_ < 1; }

  // While it was not slow.
  [[nodiscard]] const Lateness& lateness() const { return lateness_; }

 private:
  // The best share of some bursts. A long one counts twice.
  struct Evidence {
    static constexpr std::uint64_t kLongNs = 100'000'000;

    double best = 0;
    std::uint32_t count = 0;

    void add(double share, const RailPace& pace) {
      best = std::max(best, share);
      count += pace.busy_ns() < kLongNs ? 1 : 2;
    }

    // Late bursts in a row: true when there are enough of them.
    bool goes_on_with(double share, const RailPace& pace, std::uint32_t needed) {
      if (share >= kSlowBelow) {
        *this = {};
        return false;
      }
      add(share, pace);
      return count >= needed;
    }
  };

  void count_lateness(double share) {
    if (!is_slow()) {
      lateness_.add(share < kSlowBelow);
    }
  }

  void become(double value) {
    value_ = std::max(value, kWeightMin);
    best_before_ = value;
    now_ = {};
    row_ = {};
    lone_row_ = {};
  }

  // A slow rail: by the best of its last bursts, four to seven.
  void follow(double share, const RailPace& pace) {
    now_.add(share, pace);
    if (now_.count >= kFollowed) {
      best_before_ = now_.best;
      now_ = {};
    }
    const double best = std::max(best_before_, now_.best);
    value_ = std::clamp((value_ + kSmoothing * (best - value_)) * kGrowth, kWeightMin, 1.0);
  }

  static constexpr std::uint32_t kFollowed = 4;
  static constexpr double kSmoothing = 0.5;
  // Rails that carry the less the slower they look are done together whatever they could do: a little more each
  // time shows what they can.
  static constexpr double kGrowth = 1.002;
  static constexpr double kForgetting = 2.0;

  double value_ = 1.0;
  Lateness lateness_;
  Evidence row_;       // late bursts, up to the last one
  Evidence lone_row_;  // of those in which the rail went to one of several peers
  Evidence now_;       // of a slow rail
  double best_before_ = 0;
  std::uint32_t shifts_ = 0;  // since it was first suspected
  bool is_suspected_ = false;
};

}  // namespace weft::transport::rails
