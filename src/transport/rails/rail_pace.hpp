// Finds out how fast a rail of ours is, relative to the others. The measure is the best average
// rate in a burst, from its first piece to any completion. Pieces that complete late because a
// peer's NIC is busy do not lower it.
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

// The progress of one rail in one burst.
class RailPace {
 public:
  // `to_new_peer`: the first piece of this burst from the rail to that peer.
  void on_post(std::uint64_t now_ns, std::uint64_t bytes, bool to_new_peer) {
    peers_ += to_new_peer ? 1 : 0;
    began_ns_ = posted_bytes_ == 0 ? now_ns : began_ns_;
    busy_since_ns_ = done_bytes_ == posted_bytes_ ? now_ns : busy_since_ns_;
    posted_bytes_ += bytes;
    is_tail_ = false;
  }

  void on_complete(std::uint64_t now_ns, std::uint64_t bytes) {
    count_busy_time(now_ns);
    done_bytes_ += bytes;
    remember({.done_bytes = done_bytes_, .busy_ns = busy_ns_});
  }

  // Starts a new measurement at the last completion while the burst continues. The rest, when the
  // burst ends, is not judged.
  void restart() {
    posted_bytes_ -= std::min(done_bytes_, posted_bytes_);
    done_bytes_ = 0;
    count_ = 0;
    apart_bytes_ = 0;
    busy_ns_ = 0;
    began_ns_ = busy_since_ns_;
    is_rest_ = true;
    is_tail_ = true;
  }

  [[nodiscard]] std::uint32_t peers() const { return peers_; }

  [[nodiscard]] std::uint64_t done_bytes() const { return done_bytes_; }

  [[nodiscard]] std::uint64_t posted_bytes() const { return posted_bytes_; }

  [[nodiscard]] bool is_rest() const { return is_rest_; }

  // Whether nothing was posted since restart(): what is left depends on where the peers are slow.
  [[nodiscard]] bool is_tail() const { return is_tail_; }

  [[nodiscard]] std::uint64_t began_ns() const { return began_ns_; }

  // The time in which something was outstanding.
  [[nodiscard]] std::uint64_t busy_ns() const { return busy_ns_; }

  // The best average up to any completion at which at least half of `bytes` were done, until all of
  // them were. 0 if there is none. Rails are compared at the same bytes: the initial burst that a
  // NIC lets through counts less and less.
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

  // The average up to the last completion.
  [[nodiscard]] double average() const {
    return Moment{.done_bytes = done_bytes_, .busy_ns = busy_ns_}.average();
  }

 private:
  // The totals at a completion.
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

  // Keeps all completions of a short burst, and every second, fourth, ... of a longer one.
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

  // The first completions arrive together and say little about the rate.
  static constexpr std::uint64_t kEarlyDivisor = 2;

  std::uint32_t peers_ = 0;
  std::uint64_t posted_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
  bool is_rest_ = false;
  bool is_tail_ = false;
  std::array<Moment, 16> moments_{};
  std::size_t count_ = 0;          // of them
  std::uint64_t apart_bytes_ = 0;  // the least distance of two of them
};

// A rail is late in a burst if its rate is below kSlowBelow of the fastest rail's, and slow if that
// persists. From kEqualAbove on it is as fast.
inline constexpr double kSlowBelow = 0.65;
inline constexpr double kEqualAbove = 0.80;
inline constexpr double kWeightMin = 0.02;

// How often a rail was late in recent bursts. Older bursts count less.
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

// The number of late bursts in a row that cannot be chance: a rail that is late as often as
// `others`, none of which is slow, hardly ever has so many. 4 at first and where rails are never
// late. 11 to 13 where each of 1 to 7 others is late in every second burst, as on an oversubscribed
// machine. At most 42.
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

// The weight of a rail: its rate relative to the fastest rail of its side.
class RailWeight {
 public:
  // A burst is over. `share` is the rail's rate in it, divided by the fastest rail's. `needed` late
  // bursts in a row make it a slow rail. Chance makes rails slower, never faster, so the best of
  // several bursts counts.
  void update(double share, const RailPace& pace, std::uint32_t needed) {
    count_lateness(share);
    if (share >= kEqualAbove && (!is_slow() || is_equal_again(share, pace))) {
      become(1.0);
    } else if (is_slow()) {
      follow(share, pace);
    } else if (row_.goes_on_with(share, pace, needed)) {
      become(row_.best);
    }
    is_ours_ = is_slow() && (is_ours_ || pace.peers() > 1);
  }

  // The same for a burst in which the rail sent to only one of several peers; that peer may be the
  // slow one. So the rail is only suspected, until the rails have been shifted and it is late with
  // another peer as well.
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
      is_ours_ = true;
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

  // Whether it was slow with several peers, in one burst or one after the other. With one peer
  // alone, that peer's rail may be the slow one.
  [[nodiscard]] bool is_ours() const { return is_ours_; }

  // For a peer's rail: sets the value that the peer sent.
  void set(double value) { value_ = std::clamp(value, kWeightMin, 1.0); }

  // A slow rail was not judged for a while because it carries too little. Its weight is raised, to
  // try it again.
  void forget() { value_ = std::min(1.0, value_ * kForgetting); }

  // 1 for a rail that is as fast as the others, or of which too little is known.
  [[nodiscard]] double value() const { return value_; }

  [[nodiscard]] bool is_slow() const { return value_ < 1; }

  // Of the bursts in which the rail was not slow.
  [[nodiscard]] const Lateness& lateness() const { return lateness_; }

 private:
  // The best share of several bursts, and their number. A long burst counts twice.
  struct Evidence {
    static constexpr std::uint64_t kLongNs = 100'000'000;

    double best = 0;
    std::uint32_t count = 0;

    void add(double share, const RailPace& pace) {
      best = std::max(best, share);
      count += pace.busy_ns() < kLongNs ? 1 : 2;
    }

    // Counts late bursts in a row. True when there are enough of them.
    bool goes_on_with(double share, const RailPace& pace, std::uint32_t needed) {
      if (share >= kSlowBelow) {
        *this = {};
        return false;
      }
      add(share, pace);
      return count >= needed;
    }
  };

  // Whether a slow rail has kept up with the others in several bursts in a row. One is not enough:
  // the others may have waited for busy peers.
  bool is_equal_again(double share, const RailPace& pace) {
    equal_row_.add(share, pace);
    return equal_row_.count >= kEqualBursts;
  }

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
    equal_row_ = {};
  }

  // A slow rail follows the best share of its last four to seven bursts.
  void follow(double share, const RailPace& pace) {
    equal_row_ = share < kEqualAbove ? Evidence{} : equal_row_;
    now_.add(std::min(share, value_ * kRiseMax), pace);
    if (now_.count >= kFollowed) {
      best_before_ = now_.best;
      now_ = {};
    }
    const double best = std::max(best_before_, now_.best);
    value_ = std::clamp((value_ + kSmoothing * (best - value_)) * kGrowth, kWeightMin, 1.0);
  }

  static constexpr std::uint32_t kFollowed = 4;
  static constexpr std::uint32_t kEqualBursts = 3;
  static constexpr double kSmoothing = 0.5;
  static constexpr double kRiseMax = 1.25;
  // Rails that are loaded by their weights all finish together, whatever their real rates are. A
  // slightly higher weight each time shows whether the rail can carry more.
  static constexpr double kGrowth = 1.001;
  static constexpr double kForgetting = 2.0;

  double value_ = 1.0;
  Lateness lateness_;
  Evidence row_;       // late bursts in a row, up to the last burst
  Evidence lone_row_;  // the same of bursts in which the rail sent to one of several peers
  Evidence now_;       // of a slow rail: see follow
  Evidence equal_row_;
  double best_before_ = 0;
  std::uint32_t shifts_ = 0;  // since it was first suspected
  bool is_suspected_ = false;
  bool is_ours_ = false;
};

}  // namespace weft::transport::rails
