// weft-run itself: hosts the rendezvous, drives the agents, passes signals and output on, and
// decides when the job is over and what to return.
//
// One thread, so that it may fork. It never outlives its agents, nor they it. Every wait has a
// deadline, but for that of a job without --timeout for its PEs (README.md lists them).
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/bootstrap/rendezvous_server.hpp"
#include "tools/run/agent_link.hpp"
#include "tools/run/inherited.hpp"
#include "tools/run/options.hpp"
#include "tools/run/output.hpp"
#include "tools/run/pe_table.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/unjoined.hpp"

namespace weft::run {

class Launcher {
 public:
  // `inherited` is what weft-run was started with; signals() are blocked since.
  Launcher(const Options& options, const Inherited& inherited);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher();

  // Runs the job to its end. Returns weft-run's exit status. Throws Error if it cannot begin.
  [[nodiscard]] int run();

  // Those that weft-run takes for its job. A signal that is ignored (nohup) stays so.
  [[nodiscard]] static sigset_t signals();

 private:
  void start_agents();
  void start_rendezvous();
  void send_jobs();

  void wait_for_events();
  void handle_signals();
  void handle_user_signal(int number);
  void handle_link(AgentLink& link);
  void handle_frame(AgentLink& link, const bootstrap::BootstrapFrame& frame);
  void handle_exit(std::uint32_t pe, int wait_status);
  void handle_output(std::span<const std::byte> payload);
  void handle_lost_agent(AgentLink& link);
  void check_output();

  // Deadlines.
  [[nodiscard]] Clock::time_point next_deadline() const;
  void check_deadlines();
  void check_unjoined(bool is_over);
  void give_up_agents();

  void end_job();
  void fail_job(int status, const std::string& why);
  void report_culprit(bool is_last_chance);
  [[nodiscard]] std::optional<std::uint32_t> culprit() const;
  [[nodiscard]] int final_status();

  Options options_;
  Inherited inherited_;
  Plan plan_;
  FileDescriptor signals_;
  std::vector<AgentLink> links_;  // in the order of plan_.machines
  std::optional<bootstrap::RendezvousServer> server_;
  PeTable pes_;
  JobOutput output_;
  UnjoinedWatch unjoined_;
  Clock::time_point deadline_ = Clock::time_point::max();        // --timeout
  Clock::time_point start_deadline_ = Clock::time_point::max();  // of all agents
  Clock::time_point end_deadline_;                               // once the job is ending
  Clock::time_point asked_at_;                                   // to end, by a signal

  bool is_ending_ = false;
  bool has_reported_ = false;
  bool has_lost_output_ = false;
  std::optional<std::uint32_t> reported_;      // whose end was said to be the cause
  std::optional<std::uint32_t> first_failed_;  // the first PE that failed by itself
  int status_ = 0;                             // weft-run's own failure, if any
  int user_signal_ = 0;                        // that ended the job
};

}  // namespace weft::run
