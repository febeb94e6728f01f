// How a call of an exchange ends when a rank cannot take part: it tells all ranks, whatever channel
// they wait in, each of them passes it on, and all have left the call when they have heard of all
// others. A call that no rank refuses has nothing of this but a look at one word for each rank
// while it waits.
//
// Nobody can have completed a call that a rank has refused, because each call waits for something
// of every rank. What was sent in it is complete, and the numbers of its channels are the same on
// all ranks, before the next call begins.
//
// Threads: one at a time.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "moe/src/cpu/attendance.hpp"
#include "moe/src/cpu/channel.hpp"
#include "moe/src/plan/ranks.hpp"

namespace weft::moe::engine {

class Refusals {
 public:
  // `memory`: symmetric and zeroed, bytes().
  Refusals(const Ranks& ranks, std::byte* memory);

  [[nodiscard]] static std::size_t bytes(std::size_t ranks);

  // `channel` is used in calls of `step`.
  void add(Channel& channel, weft_moe_step step) { channels_.push_back({&channel, step, 0}); }

  // The next call of the exchange.
  void begin(weft_moe_step step);

  [[nodiscard]] std::uint32_t exchange_call() const {
    return static_cast<std::uint32_t>(exchange_calls_);
  }

  // How many have begun; the same on all ranks.
  [[nodiscard]] std::uint64_t& exchange_calls() { return exchange_calls_; }

  [[nodiscard]] Channel& channel() { return channel_; }

  // What a rank of `active` says that has left this call; null: nobody has.
  [[nodiscard]] const Message* heard(const std::vector<bool>& active) const;
  // Leaves this call with what this rank says itself or has heard. Returns what a rank said in its
  // own words, the first one's, else what one passed on.
  const Message& end_call(const Message& refusal, Attendance& attendance);

 private:
  void tell(Message refusal);
  void complete(const std::vector<bool>& active, const std::vector<bool>& steps);

  struct Used {
    Channel* channel;
    weft_moe_step step;
    std::uint64_t calls;  // before this call of the exchange
  };

  const Ranks& ranks_;
  Channel channel_;
  std::vector<Used> channels_;
  std::uint64_t exchange_calls_ = 0;
  weft_moe_step step_ = WEFT_MOE_DISPATCH;
};

// What a rank says that cannot take part.
[[nodiscard]] Message refusal_of(const Ranks& ranks, std::string_view text);

}  // namespace weft::moe::engine
