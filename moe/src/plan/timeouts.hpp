// How long the receives of an exchange wait. What a program gives holds for each call. Without
// (timeout_s 0) it is WEFT_MOE_TIMEOUT; and without that, long until the first call has completed,
// as ranks load and compile meanwhile, and short from then on. Dispatch and combine have a first
// call each: experts are compiled between the two. On a GPU a call that is enqueued behind the
// first begins to wait when that has completed; a graph keeps what was so when it was captured.
//
// Threads: the exchange's, one at a time; of_call: any.
#pragma once

#include <weft/moe.h>

#include <cstdint>

namespace weft::moe::engine {

class Timeouts {
 public:
  static constexpr double kFirstS = 1800;
  static constexpr double kLaterS = 100;

  // Throws Error if WEFT_MOE_TIMEOUT is no number.
  explicit Timeouts(const weft_moe_config& config);

  // A call of `step` begins: the next three are about it.
  void begin(weft_moe_step step) { step_ = step; }

  [[nodiscard]] double seconds() const {
    return (step_ == WEFT_MOE_DISPATCH ? dispatched_ : combined_) ? later_s_ : first_s_;
  }

  [[nodiscard]] std::uint64_t nanoseconds() const {
    return static_cast<std::uint64_t>(seconds() * 1e9);
  }

  void completed() { (step_ == WEFT_MOE_DISPATCH ? dispatched_ : combined_) = true; }

  // The first has number 1.
  [[nodiscard]] double of_call(std::uint64_t number) const {
    return number == 1 ? first_s_ : later_s_;
  }

 private:
  double first_s_;
  double later_s_;
  weft_moe_step step_ = WEFT_MOE_DISPATCH;
  bool dispatched_ = false;
  bool combined_ = false;
};

}  // namespace weft::moe::engine
