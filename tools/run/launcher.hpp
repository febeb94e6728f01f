// weft-run itself: hosts the rendezvous, drives the agents, passes signals and output on, and decides
// when the job is over and what to return.
//
// One thread, so that it may fork. It never outlives its agents, nor they it.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/bootstrap/rendezvous_server.hpp"
#include "tools/run/agent_link.hpp"
#include "tools/run/options.hpp"
#include "tools/run/output.hpp"
#include "tools/run/plan.hpp"

namespace weft::run {

class Launcher {
 public:
  // `signal_mask` is the mask that weft-run was started with; signals() are blocked since.
  Launcher(const Options& options, const sigset_t& signal_mask);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher();

  // Runs the job to its end. Returns weft-run's exit status. Throws Error if it cannot begin.
  [[nodiscard]] int run();

  // Those that weft-run takes for its job. A signal that is ignored (nohup) stays so.
  [[nodiscard]] static sigset_t signals();

 private:
  struct PeState {
    std::uint32_t pid = 0;
    std::optional<int> wait_status;  // once it has ended
  };

  void start_agents();
  void start_rendezvous();
  void send_jobs();

  void wait_for_events();
  void handle_signals();
  void handle_user_signal(int number);
  void handle_link(AgentLink& link);
  void handle_frame(AgentLink& link, const bootstrap::Frame& frame);
  void handle_exit(std::uint32_t pe, int wait_status);
  void handle_output(std::span<const std::byte> payload);
  void handle_lost_agent(AgentLink& link);
  [[nodiscard]] bool is_culprit(const AgentLink& link) const;
  void check_timeout();
  void check_end();

  void end_job();
  void fail_job(int status, const std::string& why);
  void report_culprit(bool is_last_chance);
  [[nodiscard]] std::optional<std::uint32_t> culprit() const;
  [[nodiscard]] bool has_open_link() const;
  [[nodiscard]] int final_status();

  Options options_;
  sigset_t signal_mask_;
  Plan plan_;
  FileDescriptor signals_;
  std::vector<AgentLink> links_;  // in the order of plan_.machines
  std::optional<bootstrap::RendezvousServer> server_;
  std::vector<PeState> pes_;
  LinePrefixer prefixer_;
  Clock::time_point deadline_;

  bool is_ending_ = false;
  bool has_reported_ = false;
  std::optional<std::uint32_t> reported_;      // whose end was said to be the cause
  std::optional<std::uint32_t> first_failed_;  // the first PE that failed by itself
  int status_ = 0;                             // weft-run's own failure, if any
  int user_signal_ = 0;                        // that ended the job
};

}  // namespace weft::run
