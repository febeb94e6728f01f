#include "tools/run/launcher.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

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

namespace weft::run {
namespace {

using bootstrap::FieldReader;
using bootstrap::FieldWriter;

constexpr std::chrono::milliseconds kKillLimit{2000};

template <typename... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  fmt::print(stderr, "weft-run: {}\n", fmt::format(format, std::forward<Values>(values)...));
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return;  // nobody reads any more; the job goes on
    }
    text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
  }
}

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

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

Launcher::Launcher(const Options& options, const sigset_t& signal_mask)
    : options_(options),
      signal_mask_(signal_mask),
      plan_(make_plan(options)),
      pes_(plan_.pe_count),
      prefixer_([](std::uint32_t stream, std::string_view text) {
        write_all(static_cast<int>(stream), text);
      }) {}

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
  deadline_ = Clock::now() + std::chrono::milliseconds(std::int64_t(options_.timeout_s * 1000));
  while (has_open_link()) {
    wait_for_events();
    check_timeout();
  }
  prefixer_.flush();
  report_culprit(true);
  return final_status();
}

// Before everything else that opens a descriptor: an agent is a fork of this process.
void Launcher::start_agents() {
  const auto remote_shell = split_words(plan_.remote_shell);
  const std::string path = options_.agent_path.empty() ? own_path() : options_.agent_path;
  for (const MachinePlan& machine : plan_.machines) {
    links_.push_back(machine.host.empty()
                         ? start_local_agent(signal_mask_)
                         : start_ssh_agent(remote_shell, machine.host, path, signal_mask_));
    for (const PeTask& task : machine.job.tasks) {
      links_.back().pes.push_back(task.pe);
    }
  }
}

void Launcher::start_rendezvous() {
  const Config config = load_config_from_environment();
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
  for (const AgentLink& link : links_) {
    // A negative descriptor is skipped by poll(2), and keeps the indices equal.
    const short events = link.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    entries.push_back(
        {.fd = link.is_open ? link.connection.input() : -1, .events = events, .revents = 0});
  }
  const bool has_deadline = options_.timeout_s > 0 && !is_ending_;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  const int wait_ms =
      has_deadline ? static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)) : -1;
  if (::poll(entries.data(), entries.size(), wait_ms) < 0 && errno != EINTR) {
    fail("poll failed: {}", errno_words(errno));
  }
  if (entries[1].revents != 0) {
    server_->serve(std::chrono::milliseconds(0));
    check_end();
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (entries[i + 2].revents != 0) {
      links_[i].connection.flush();
      handle_link(links_[i]);
    }
  }
  if (entries[0].revents != 0) {
    handle_signals();
  }
}

// A PE has called weft_global_exit: that is no failure, whatever the status.
void Launcher::check_end() {
  if (server_->job().end_status()) {
    end_job();
  }
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
  if (is_ending_ && ends_job(number)) {
    say("asked twice to end; killing all PEs");
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

void Launcher::handle_frame(AgentLink& link, const bootstrap::Frame& frame) {
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(AgentMessage::Output)) {
    handle_output(frame.payload);
  } else if (frame.type == static_cast<std::uint16_t>(AgentMessage::Started)) {
    const std::uint32_t pe = fields.u32();
    pes_.at(pe).pid = fields.u32();
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
  const std::string_view bytes(text, fields.rest().size());
  if (options_.prefixes_output) {
    prefixer_.append(pe, stream, bytes);
  } else {
    write_all(static_cast<int>(stream), bytes);
  }
}

void Launcher::handle_exit(std::uint32_t pe, int wait_status) {
  pes_.at(pe).wait_status = wait_status;
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
  int wait_status = 0;
  ::waitpid(link.pid, &wait_status, 0);
  const bool is_over = std::ranges::all_of(
      link.pes, [this](std::uint32_t pe) { return pes_[pe].wait_status.has_value(); });
  if (is_over || (is_ending_ && !is_culprit(link))) {
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

// A PE elsewhere failed because this host's were lost, and that was heard first.
bool Launcher::is_culprit(const AgentLink& link) const {
  const auto lost = server_->job().first_lost();
  return first_failed_ && user_signal_ == 0 && lost && !pes_[lost->value].wait_status &&
         std::ranges::find(link.pes, lost->value) != link.pes.end();
}

void Launcher::check_timeout() {
  if (options_.timeout_s <= 0 || is_ending_ || Clock::now() < deadline_) {
    return;
  }
  std::vector<Pe> running;
  for (std::uint32_t pe = 0; pe < pes_.size(); ++pe) {
    if (!pes_[pe].wait_status) {
      running.emplace_back(pe);
    }
  }
  fail_job(kStatusTimeout, fmt::format("the job did not end within {} s (--timeout); {} still ran",
                                       options_.timeout_s, bootstrap::format_pes(running)));
}

void Launcher::fail_job(int status, const std::string& why) {
  if (status_ == 0 && !has_reported_) {
    status_ = status;
    has_reported_ = true;
    say("{}", why);
  }
  end_job();
}

void Launcher::end_job() {
  if (is_ending_) {
    return;
  }
  is_ending_ = true;
  for (AgentLink& link : links_) {
    send(link, AgentMessage::End, {});
  }
}

// Who is to blame: the PE whose loss the rendezvous saw first, if it failed; others fail because of
// it, and over ssh their ends may be reported before its own.
std::optional<std::uint32_t> Launcher::culprit() const {
  if (const auto lost = server_->job().first_lost()) {
    const auto& wait_status = pes_[lost->value].wait_status;
    if (wait_status && exit_status_of(*wait_status) != 0) {
      return lost->value;
    }
  }
  return first_failed_;
}

void Launcher::report_culprit(bool is_last_chance) {
  if (has_reported_ || !first_failed_ || user_signal_ != 0) {
    return;
  }
  const auto lost = server_->job().first_lost();
  if (lost && !pes_[lost->value].wait_status && !is_last_chance) {
    return;  // its own end has still to come
  }
  const std::uint32_t pe = *culprit();
  say("PE {} (pid {}) {}", pe, pes_[pe].pid, describe_wait_status(*pes_[pe].wait_status));
  reported_ = pe;
  has_reported_ = true;
}

bool Launcher::has_open_link() const {
  return std::ranges::any_of(links_, &AgentLink::is_open);
}

int Launcher::final_status() {
  if (status_ != 0) {
    return status_;
  }
  if (server_->job().end_status() && !first_failed_) {
    return *server_->job().end_status();
  }
  if (user_signal_ != 0) {
    const bool all_well = std::ranges::all_of(pes_, [](const PeState& pe) {
      return pe.wait_status && exit_status_of(*pe.wait_status) == 0;
    });
    return all_well ? 0 : 128 + user_signal_;
  }
  // The one that was named, whatever is known of others since.
  const auto blamed = reported_ ? reported_ : culprit();
  return first_failed_ ? exit_status_of(*pes_[*blamed].wait_status) : 0;
}

}  // namespace weft::run
