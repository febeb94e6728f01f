#include "tools/run/launcher.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/config.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/bootstrap/frame.hpp"
#include "tools/run/leftover_pages.hpp"
#include "tools/run/processes.hpp"
#include "tools/run/shell_words.hpp"

namespace weft::run {
namespace {

using bootstrap::FieldReader;
using bootstrap::FieldWriter;

constexpr std::chrono::milliseconds kKillLimit{2000};
// What an agent may take, beyond the grace, to end its PEs and itself.
constexpr std::chrono::milliseconds kEndLimit{5000};
// timeout(1) signals its child and then its group, sshd and systemd send two signals in a row: one
// request. A user who asks again does so later.
constexpr std::chrono::milliseconds kSameRequest{500};

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

bool is_ignored(int number) {
  struct sigaction action{};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool ends_job(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

}  // namespace

sigset_t Launcher::signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    if (!is_ignored(number)) {
      sigaddset(&set, number);
    }
  }
  return set;
}

Launcher::Launcher(const Options& options, const Inherited& inherited)
    : options_(options),
      inherited_(inherited),
      plan_(make_plan(options)),
      pes_(plan_.pe_count),
      output_(options.prefixes_output),
      unjoined_(options, plan_.pe_count) {}

Launcher::~Launcher() {
  for (AgentLink& link : links_) {
    link.is_open = false;
  }
  links_.clear();  // agents that still live see that, and kill what they have
  kill_descendants(kKillLimit);
  std::error_code code;
  for (const MachinePlan& machine : plan_.machines) {
    if (machine.host.empty()) {
      remove_leftover_pages(machine.job);  // where the agent was killed, too
    }
    if (!machine.job.private_directory.empty()) {
      std::filesystem::remove_all(machine.job.private_directory, code);
    }
  }
}

int Launcher::run() {
  const auto start = Clock::now();
  // An agent that is killed leaves its processes to this one.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  start_agents();
  const sigset_t set = signals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open()) {
    fail("signalfd failed: {}", errno_words(errno));
  }
  start_rendezvous();
  send_jobs();
  if (options_.timeout_s > 0) {
    deadline_ = start + std::chrono::milliseconds(std::int64_t(options_.timeout_s * 1000));
  }
  while (std::ranges::any_of(links_, &AgentLink::is_open)) {
    wait_for_events();
    check_deadlines();
    check_unjoined(false);
  }
  check_unjoined(true);
  report_culprit(true);
  // Once the job is ended early, nobody is waited for who does not read.
  output_.finish(is_ending_ ? Clock::now() + kKillLimit : deadline_);
  check_output();
  return final_status();
}

// Before everything else that opens a descriptor: an agent is a fork of this process.
void Launcher::start_agents() {
  const auto remote_shell = split_words(plan_.remote_shell);
  const bool has_others = std::ranges::any_of(
      plan_.machines, [](const MachinePlan& machine) { return !machine.host.empty(); });
  if (has_others && remote_shell.empty()) {
    fail(Status::InvalidArgument, "--ssh-command '{}': it names no program", plan_.remote_shell);
  }
  const std::string path =
      options_.agent_path.empty() && has_others ? own_path() : options_.agent_path;
  for (const MachinePlan& machine : plan_.machines) {
    links_.push_back(machine.host.empty()
                         ? start_local_agent(inherited_)
                         : start_remote_agent(remote_shell, machine.host, path, inherited_));
    for (const PeTask& task : machine.job.tasks) {
      links_.back().pes.push_back(task.pe);
    }
  }
}

void Launcher::start_rendezvous() {
  const Config config = load_config_from_environment();
  start_deadline_ = Clock::now() + std::chrono::seconds(config.bootstrap_timeout_s);
  log::set_level(log::parse_level(config.log));
  server_.emplace(plan_.rendezvous, bootstrap::RendezvousServer::Options{
                                        .pe_count = plan_.pe_count,
                                        .secret = plan_.secret,
                                        .timeout = std::chrono::seconds(config.bootstrap_timeout_s),
                                        .announces_losses = options_.on_peer_lost == "report"});
  set_job_environment(plan_, options_, server_->address());
}

void Launcher::send_jobs() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    send(links_[i], AgentMessage::Job, encode_job(plan_.machines[i].job));
  }
}

void Launcher::wait_for_events() {
  std::vector<pollfd> entries{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                              {.fd = server_->event_fd(), .events = POLLIN, .revents = 0}};
  // A negative descriptor is skipped by poll(2), and keeps the indices equal.
  std::ranges::copy(output_.interest(), std::back_inserter(entries));
  const std::size_t first = entries.size();
  for (const AgentLink& link : links_) {
    const int events =
        (output_.is_full() ? 0 : POLLIN) | (link.connection.has_unsent() ? POLLOUT : 0);
    entries.push_back({.fd = link.is_open && events != 0 ? link.connection.input() : -1,
                       .events = static_cast<short>(events),
                       .revents = 0});
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next_deadline() - Clock::now()).count();
  const int wait_ms = next_deadline() == Clock::time_point::max()
                          ? -1
                          : static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  if (::poll(entries.data(), entries.size(), wait_ms) < 0 && errno != EINTR) {
    fail("poll failed: {}", errno_words(errno));
  }
  if (entries[1].revents != 0) {
    server_->serve(std::chrono::milliseconds(0));
    if (server_->job().end_status()) {
      end_job();  // a PE has called weft_global_exit: that is no failure, whatever the status
    }
  }
  output_.write();
  check_output();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (entries[i + first].revents != 0) {
      links_[i].connection.flush();
      handle_link(links_[i]);
    }
  }
  if (entries[0].revents != 0) {
    handle_signals();
  }
}

Clock::time_point Launcher::next_deadline() const {
  return is_ending_ ? end_deadline_ : std::min({deadline_, start_deadline_, unjoined_.deadline()});
}

void Launcher::handle_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    // An agent's end shows as its closed link; it is reaped there.
    if (info.ssi_signo != SIGCHLD) {
      handle_user_signal(static_cast<int>(info.ssi_signo));
    }
  }
}

void Launcher::handle_user_signal(int number) {
  if (is_ending_ && ends_job(number) && Clock::now() < asked_at_ + kSameRequest) {
    return;
  }
  if (is_ending_ && ends_job(number)) {
    output_.say("asked twice to end; killing all PEs");
    kill_descendants(kKillLimit);
    for (AgentLink& link : links_) {
      link.is_open = link.is_open && !link.is_local;
    }
    return;
  }
  for (AgentLink& link : links_) {
    send(link, AgentMessage::Signal, FieldWriter().u32(static_cast<std::uint32_t>(number)).bytes());
  }
  if (number == SIGTSTP) {
    ::raise(SIGSTOP);  // the shell sees weft-run stop, as it would any program
  } else if (ends_job(number)) {
    user_signal_ = number;
    asked_at_ = Clock::now();
    // What they do about it is the PEs' business, for the time of the grace.
    end_job();
  }
}

void Launcher::handle_link(AgentLink& link) {
  const bool is_open = link.connection.receive();
  while (const auto frame = link.connection.next_frame()) {
    handle_frame(link, *frame);
  }
  if (!is_open) {
    link.is_open = false;
    handle_lost_agent(link);
  }
}

void Launcher::handle_frame(AgentLink& link, const bootstrap::BootstrapFrame& frame) {
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(AgentMessage::Output)) {
    handle_output(frame.payload);
  } else if (frame.type == static_cast<std::uint16_t>(AgentMessage::Started)) {
    const std::uint32_t pe = fields.u32();
    pes_.note_start(pe, fields.u32());
  } else if (frame.type == static_cast<std::uint16_t>(AgentMessage::Exited)) {
    const std::uint32_t pe = fields.u32();
    static_cast<void>(fields.u32());
    handle_exit(pe, static_cast<int>(fields.u32()));
  } else if (frame.type == static_cast<std::uint16_t>(AgentMessage::Failed)) {
    const int status = static_cast<int>(fields.u32());
    fail_job(status, fields.text() + (link.is_local ? "" : " (on " + link.host + ")"));
  }
}

void Launcher::handle_output(std::span<const std::byte> payload) {
  FieldReader fields(payload);
  const std::uint32_t pe = fields.u32();
  const std::uint32_t stream = fields.u32();
  const auto* text = reinterpret_cast<const char*>(fields.rest().data());
  output_.append(pe, stream, {text, fields.rest().size()});
  check_output();
}

// As in a shell's pipeline, a job whose output nobody reads any more ends.
void Launcher::check_output() {
  if (output_.error() == 0 || has_lost_output_) {
    return;
  }
  has_lost_output_ = true;
  if (output_.error() == EPIPE) {
    fail_job(128 + SIGPIPE, "nobody reads the job's output any more (SIGPIPE)");
  } else {
    output_.say(fmt::format("cannot write the job's output: {}; it is lost from here on",
                            errno_words(output_.error())));
  }
}

void Launcher::handle_exit(std::uint32_t pe, int wait_status) {
  pes_.note_end(pe, wait_status);
  const bool has_failed = exit_status_of(wait_status) != 0;
  server_->job().note_exit(Pe(pe), describe_wait_status(wait_status));
  if (has_failed && !is_ending_) {
    first_failed_ = first_failed_.value_or(pe);
    if (options_.on_peer_lost == "end") {
      end_job();
    }
  }
  report_culprit(false);
}

void Launcher::handle_lost_agent(AgentLink& link) {
  const int wait_status = end_child(link.pid, kKillLimit);
  // A PE elsewhere failed because this host's were lost, and that was heard first.
  const auto lost = server_->job().first_lost();
  const bool is_culprit = first_failed_ && user_signal_ == 0 && lost &&
                          !pes_.wait_status(lost->value) &&
                          std::ranges::find(link.pes, lost->value) != link.pes.end();
  if (pes_.running_of(link).empty() || (is_ending_ && !is_culprit)) {
    return;
  }
  const bool is_srun = plan_.remote_shell.starts_with("srun ");
  if (link.is_local) {
    fail_job(kStatusFailure, fmt::format("the agent of {} {}; its PEs are killed", link.host,
                                         describe_wait_status(wait_status)));
  } else {
    fail_job(
        kStatusFailure,
        fmt::format("lost the host '{}' ({} {}): is it reachable{}, and is weft-run there at the "
                    "same path? (--agent-path tells where)",
                    link.host, is_srun ? "srun" : "ssh", describe_wait_status(wait_status),
                    is_srun ? "" : " by ssh without a password"));
  }
}

void Launcher::check_deadlines() {
  const auto now = Clock::now();
  if (is_ending_ && now >= end_deadline_) {
    give_up_agents();
  } else if (!is_ending_ && now >= deadline_) {
    fail_job(kStatusTimeout, fmt::format("the job did not end within {} s (--timeout); {}",
                                         options_.timeout_s, pes_.describe_running(links_)));
  } else if (!is_ending_ && now >= start_deadline_) {
    start_deadline_ = Clock::time_point::max();
    if (const std::string hosts = pes_.describe_unstarted(links_); !hosts.empty()) {
      fail_job(kStatusFailure,
               fmt::format("{} within WEFT_BOOTSTRAP_TIMEOUT; does a login there end, and does "
                           "weft-run start there?",
                           hosts));
    }
  }
}

void Launcher::check_unjoined(bool is_over) {
  if (status_ != 0 || user_signal_ != 0) {
    return;  // whatever was said about that is the cause
  }
  if (const auto warning = unjoined_.check(server_->job().has_any_joined(), is_over)) {
    output_.say(*warning);
  }
}

// They did not end their PEs in time: stopped, or on a host that does not answer.
void Launcher::give_up_agents() {
  for (AgentLink& link : links_) {
    if (!link.is_open) {
      continue;
    }
    const std::vector<Pe> running = pes_.running_of(link);
    if (!running.empty()) {
      output_.say(fmt::format("{} did not end {} within {} s{}", name_of(link),
                              bootstrap::format_pes(running),
                              std::chrono::duration<double>(kEndLimit).count() + options_.grace_s,
                              link.is_local ? "; they are killed" : "; they may still run there"));
    }
    link.is_open = false;
    static_cast<void>(end_child(link.pid, std::chrono::milliseconds(0)));
  }
}

void Launcher::fail_job(int status, const std::string& why) {
  if (status_ == 0 && !has_reported_) {
    status_ = status;
    has_reported_ = true;
    output_.say(why);
  }
  end_job();
}

void Launcher::end_job() {
  if (is_ending_) {
    return;
  }
  is_ending_ = true;
  end_deadline_ = Clock::now() + kEndLimit +
                  std::chrono::milliseconds(static_cast<std::int64_t>(options_.grace_s * 1000));
  for (AgentLink& link : links_) {
    send(link, AgentMessage::End, {});
  }
}

// Who is to blame: the PE whose loss the rendezvous saw first, if it failed; others fail because of
// it, and over ssh their ends may be reported before its own.
std::optional<std::uint32_t> Launcher::culprit() const {
  const auto lost = server_->job().first_lost();
  return lost && pes_.has_failed(lost->value) ? lost->value : first_failed_;
}

void Launcher::report_culprit(bool is_last_chance) {
  if (has_reported_ || !first_failed_ || user_signal_ != 0) {
    return;
  }
  const auto lost = server_->job().first_lost();
  if (lost && !pes_.wait_status(lost->value) && !is_last_chance) {
    return;  // its own end has still to come
  }
  const std::uint32_t pe = *culprit();
  output_.say(fmt::format("PE {} (pid {}) {}", pe, pes_.pid(pe),
                          describe_wait_status(*pes_.wait_status(pe))));
  reported_ = pe;
  has_reported_ = true;
}

int Launcher::final_status() {
  if (status_ != 0) {
    return status_;
  }
  if (server_->job().end_status() && !first_failed_) {
    return *server_->job().end_status();
  }
  if (user_signal_ != 0) {
    return pes_.have_ended_well() ? 0 : 128 + user_signal_;
  }
  // The one that was named, whatever is known of others since.
  if (const auto blamed = reported_ ? reported_ : culprit(); first_failed_) {
    return exit_status_of(*pes_.wait_status(*blamed));
  }
  return has_lost_output_ ? kStatusFailure : 0;
}

}  // namespace weft::run
