// One job as its rendezvous sees it: which PEs have joined, the rounds in which their blobs are
// gathered, and how the job ended. It knows no sockets: messages come in through join and handle,
// and leave through a function.
//
// A job fails once and permanently; every PE is told the reason, and the host's own PE last, since
// that may end the rendezvous.
//
// One owner thread, that of the RendezvousServer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/ids.hpp"
#include "src/bootstrap/connection.hpp"
#include "src/bootstrap/protocol.hpp"

namespace weft::bootstrap {

[[nodiscard]] SharedFrame frame_of(Message type, std::span<const std::byte> payload);

class RendezvousJob {
 public:
  struct Options {
    std::string rendezvous;  // its address, for the log
    std::uint32_t pe_count = 0;
    std::chrono::milliseconds timeout{};  // from the first PE of a round to the last
    std::optional<Pe> host;               // the PE that runs in this process, if any
    bool announces_losses = false;        // PEs go on when others are lost, and want to know which
  };

  // Sends a frame to a PE; does nothing for a PE that is not connected.
  using Tell = std::function<void(Pe, const SharedFrame&)>;

  RendezvousJob(Options options, Tell tell);

  // Why the PE may not join; empty if it may. `pe_count` is the size of the job that it was started
  // for.
  [[nodiscard]] std::string reason_to_refuse(Pe pe, std::uint32_t pe_count) const;
  // The PE is connected and authenticated.
  void join(Pe pe);
  // A frame of a PE that has joined. Throws Error (InvalidArgument) if it violates the protocol.
  void handle(Pe pe, const BootstrapFrame& frame);
  // The PE's connection closed; it is lost unless it rests or has left.
  void note_closed(Pe pe);

  // The launcher saw this PE's process exit: if it had not joined, it will not join any more. `how`
  // completes "PE 3 ...", for example "exited with status 0".
  void note_exit(Pe pe, const std::string& how);
  // The host stops serving: remaining PEs must not treat its closing as a loss.
  void say_goodbye();

  // How often every PE, but for those that have left, has ended a job of its own and come to rest.
  [[nodiscard]] std::uint32_t rest_count() const;
  // The PEs that are connected and take part in no job.
  [[nodiscard]] std::uint32_t resting_count() const;

  // When the round fails; max() if it has not begun, or if the job has ended.
  [[nodiscard]] Clock::time_point deadline() const;
  // When check_deadline has something to do; max() if never.
  [[nodiscard]] Clock::time_point next_check() const;
  // Fails the round if its deadline has passed; the error names the missing PEs. Before that, once,
  // after 10 s: logs them.
  void check_deadline(Clock::time_point now);

  // Whether any PE has ever joined.
  [[nodiscard]] bool has_any_joined() const;

  // The PE whose loss broke the job, as far as the rendezvous knows.
  [[nodiscard]] std::optional<Pe> first_lost() const { return first_lost_; }

  // Why the job cannot continue; empty while it can.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  // The status that a PE that ended the whole job (Bootstrap::end_job) wants the launcher to
  // return.
  [[nodiscard]] std::optional<int> end_status() const { return end_status_; }

 private:
  struct Member {
    bool has_joined = false;
    bool has_left = false;
    bool is_resting = false;
    std::uint32_t rest_count = 0;
    std::string why_left;  // empty: it has finalized
    std::string exit;      // how its process exited, if the launcher reported it
  };

  [[nodiscard]] bool has_ended() const { return failure_.has_value() || end_status_.has_value(); }

  // Rounds: 0 is joining, each later one an allgather.
  void arrive(Pe pe, Blob blob);
  void complete_round();
  void check_absent();
  [[nodiscard]] std::vector<Pe> missing() const;

  void end_all(int status);
  void fail_all(Status status, const std::string& why);
  void broadcast(Message type, std::span<const std::byte> payload);

  Options options_;
  Tell tell_;
  std::vector<Member> members_;  // by PE

  std::uint32_t round_ = 0;
  std::vector<bool> has_arrived_;  // by PE, in this round
  std::vector<Blob> blobs_;        // by PE, in this round
  std::uint32_t arrived_count_ = 0;
  std::optional<Clock::time_point> round_deadline_;  // set by the round's first PE
  std::optional<Clock::time_point> report_at_;       // set by it too

  std::optional<Error> failure_;
  std::optional<Pe> first_lost_;
  std::optional<int> end_status_;
};

}  // namespace weft::bootstrap
