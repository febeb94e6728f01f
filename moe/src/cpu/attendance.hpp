// Who takes part in an exchange: waits for the messages of a call, and finds out who is missing, or
// does something else. What happens when one is missing follows weft_moe_on_timeout: the exchange
// is broken, or goes on without it.
//
// If rows travel by node, a message may be missing because the rank that took it for others is
// gone, perhaps after it sent its own. So with WEFT_MOE_MASK a rank that hears nothing from a node
// sends what it sent there once more, to another rank of it, and ranks of other nodes are given
// three more timeouts. Without, a rank may be late because it waited, in an earlier step, for one
// that is gone: where one is lost, or several are missing, those that are not known to be lost are
// given one more.
//
// Threads: one at a time.
#pragma once

#include <weft/moe.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moe/src/cpu/channel.hpp"
#include "moe/src/plan/groups.hpp"
#include "moe/src/plan/ranks.hpp"
#include "moe/src/plan/timeouts.hpp"

namespace weft::moe::engine {

// Thrown by waits: the call has ended otherwise.
struct Ended {};

// Thrown by waits, and by who finds it out elsewhere: a PE does something else in this call.
struct Differs {
  int pe;
};

class Attendance {
 public:
  // `has_ended`: looked at while messages are missing: whether the call has ended otherwise. Waits
  // then throw Ended, or what it throws.
  Attendance(const weft_moe_config& config,
             const Ranks& ranks,
             const Groups& groups,
             const Timeouts& timeouts,
             std::function<bool()> has_ended);

  // `channel` learns which ranks are missing from now on. `is_relayed`: one rank of a node takes
  // its messages for all.
  void tell(Channel& channel, bool is_relayed) {
    channels_.push_back(&channel);
    if (is_relayed) {
      relayed_.push_back(&channel);
    }
  }

  // By rank.
  [[nodiscard]] const std::vector<bool>& active() const { return active_; }

  [[nodiscard]] bool is_active(std::size_t rank) const { return active_[rank]; }

  // Whether any rank of the group is.
  [[nodiscard]] bool is_group_active(std::size_t group) const;

  // Why no call works any more, or "".
  [[nodiscard]] const std::string& broken() const { return broken_; }

  // Waits for one message of each active rank; throws for ranks that are missing, or whose mode
  // differs. `visit`: as in Channel::wait.
  void receive(Channel& channel,
               std::string_view step,
               std::int32_t mode,
               Channel::Visit visit = Channel::kNoVisit);
  // The same for a channel with one message of each group.
  void receive_groups(Channel& channel, std::string_view step, std::int32_t mode);
  // The same for the ranks of this node, without throwing for those; for so many timeouts.
  void receive_mates(Channel& channel, std::string_view step, double timeouts = 1);

  // As receive_groups, without throwing for ranks.
  void absorb_groups(Channel& channel, std::string_view step) {
    note(step, missing_in_groups(channel));
  }

  // Waits for what each active rank has to say when a call has ended, without throwing.
  void receive_ends(Channel& channel, std::string_view step) {
    note(step, channel.wait(active_, timeouts_.seconds(), if_lost()));
  }

  void throw_if_broken() const;

  // All ranks that are missing, by rank, as far as they have a bit.
  [[nodiscard]] std::array<std::uint64_t, 4> missing_bits() const;
  // Goes on without those that another rank goes on without.
  void leave_out(const std::array<std::uint64_t, 4>& missing, std::string_view step);

  // Goes on without `rank`, as after a timeout. Throws where a missing rank breaks the exchange.
  void leave_out(std::size_t rank);
  // Collective over `team`, whose ranks are all here again: each channel goes on behind the last
  // call that any of them made, and so do `counts`, numbers of calls of the caller, at most three.
  // Who was behind drops what it had begun.
  void rejoin(weft_team_t team, std::span<std::uint64_t*> counts);

  // The ranks of this node that are missing, as Message::missing has them.
  [[nodiscard]] std::array<std::uint64_t, 4> missing_mates() const;

 private:
  [[nodiscard]] std::vector<std::size_t> wait(Channel& channel,
                                              const std::vector<bool>& active,
                                              double timeouts,
                                              Channel::IfLost if_lost,
                                              Channel::Visit visit = Channel::kNoVisit,
                                              Channel::Stops stops = Channel::kNeverStops);
  [[nodiscard]] std::vector<std::size_t> missing_in_groups(Channel& channel);
  [[nodiscard]] std::vector<std::size_t> recover(Channel& channel,
                                                 const std::vector<std::size_t>& missing,
                                                 Channel::Visit visit);
  [[nodiscard]] std::vector<std::size_t> await_late(Channel& channel,
                                                    const std::vector<std::size_t>& missing,
                                                    Channel::Visit visit);
  void send_elsewhere(const std::vector<std::size_t>& missing);
  [[nodiscard]] Channel::IfLost if_lost() const;
  // Drops them, and breaks the exchange where that is asked for.
  void note(std::string_view step, const std::vector<std::size_t>& missing);
  void check_message(const Channel& channel, std::size_t inlet, std::int32_t mode) const;

  const Ranks& ranks_;
  const Groups& groups_;
  const Timeouts& timeouts_;
  bool breaks_;  // when a rank is missing
  std::vector<bool> active_;
  std::string broken_;
  std::function<bool()> has_ended_;
  std::vector<Channel*> channels_;
  std::vector<Channel*> relayed_;
};

}  // namespace weft::moe::engine
