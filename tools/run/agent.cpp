#include "tools/run/agent.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/socket.hpp"
#include "tools/run/leftover_pages.hpp"
#include "tools/run/options.hpp"
#include "tools/run/output.hpp"
#include "tools/run/processes.hpp"
#include "tools/run/spawn.hpp"

namespace weft::run {
namespace {

using bootstrap::BootstrapFrame;
using bootstrap::Connection;
using bootstrap::FieldReader;
using bootstrap::FieldWriter;

// What a PE left running in the background may take to end by itself once all PEs have ended.
constexpr std::chrono::milliseconds kLeftoverGrace{500};
constexpr std::chrono::milliseconds kKillLimit{2000};
constexpr std::size_t kOutputChunkBytes = std::size_t{16} << 10U;

class Agent {
 public:
  Agent(Connection link, const Inherited& inherited);
  int run();

 private:
  struct Stream {
    FileDescriptor pipe;
    std::uint32_t pe = 0;
    std::uint32_t number = 0;  // 1 or 2, as the descriptor in the PE
  };

  void report(AgentMessage type, const FieldWriter& fields);
  void handle_link();
  void handle_frame(const BootstrapFrame& frame);
  void start_job(const Job& job);
  void add_streams(StartedPe started, std::uint32_t pe);
  void handle_signals();
  void reap();
  void read_streams(const std::vector<pollfd>& entries, std::size_t first);
  [[nodiscard]] bool read_stream(const Stream& stream);
  void signal_pes(int signal_number);
  void begin_end();
  void check_deadlines();
  [[nodiscard]] bool is_finished();
  void wait_for_events();
  void finish();

  Connection link_;
  Inherited inherited_;
  FileDescriptor signals_;
  std::optional<Job> job_;
  std::map<pid_t, std::uint32_t> running_;  // PEs by pid
  std::vector<Stream> streams_;
  bool is_link_open_ = true;
  bool has_terminated_ = false;  // the PEs' groups have got SIGTERM, which weft-run passed on
  std::optional<Clock::time_point> kill_deadline_;      // SIGTERM has been sent
  std::optional<Clock::time_point> leftover_deadline_;  // all PEs have ended
};

sigset_t agent_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&set, number);
  }
  return set;
}

Agent::Agent(Connection link, const Inherited& inherited)
    : link_(std::move(link)), inherited_(inherited) {
  const sigset_t set = agent_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open() || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    fail("signalfd or PR_SET_CHILD_SUBREAPER failed: {}", errno_words(errno));
  }
}

int Agent::run() {
  while (is_link_open_ && !is_finished()) {
    wait_for_events();
    check_deadlines();
  }
  finish();
  return 0;
}

void Agent::report(AgentMessage type, const FieldWriter& fields) {
  link_.send(bootstrap::share_frame(static_cast<std::uint16_t>(type), fields.bytes()));
}

void Agent::wait_for_events() {
  std::vector<pollfd> entries{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                              {.fd = link_.input(), .events = POLLIN, .revents = 0}};
  const bool is_full = link_.has_unsent();
  if (is_full) {
    entries.push_back({.fd = link_.output(), .events = POLLOUT, .revents = 0});
  }
  const std::size_t first = entries.size();
  // Output that weft-run does not take yet stays in the pipes, and so slows the PEs, as a terminal
  // would.
  for (std::size_t i = 0; !is_full && i < streams_.size(); ++i) {
    entries.push_back({.fd = streams_[i].pipe.get(), .events = POLLIN, .revents = 0});
  }
  const bool has_deadline = kill_deadline_ || leftover_deadline_;
  if (::poll(entries.data(), entries.size(), has_deadline ? 20 : -1) < 0 && errno != EINTR) {
    fail("poll failed: {}", errno_words(errno));
  }
  read_streams(entries, first);
  link_.flush();
  if (entries[0].revents != 0) {
    handle_signals();
  }
  if (entries[1].revents != 0) {
    handle_link();
  }
}

void Agent::handle_link() {
  is_link_open_ = link_.receive();
  while (const std::optional<BootstrapFrame> frame = link_.next_frame()) {
    handle_frame(*frame);
  }
}

void Agent::handle_frame(const BootstrapFrame& frame) {
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(AgentMessage::Job)) {
    start_job(decode_job(frame.payload));
  } else if (frame.type == static_cast<std::uint16_t>(AgentMessage::Signal)) {
    signal_pes(static_cast<int>(fields.u32()));
  } else if (frame.type == static_cast<std::uint16_t>(AgentMessage::End)) {
    begin_end();
  } else {
    fail("weft-run's agent does not know frame {}", frame.type);
  }
}

void Agent::start_job(const Job& job) {
  job_ = job;
  try {
    const CoreBinder binder(job.binding, static_cast<std::uint32_t>(job.tasks.size()));
    for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
      StartedPe started = start_pe(job, i, binder, inherited_);
      const std::uint32_t pe = job.tasks[i].pe;
      running_.emplace(started.pid, pe);
      report(AgentMessage::Started,
             FieldWriter().u32(pe).u32(static_cast<std::uint32_t>(started.pid)));
      add_streams(std::move(started), pe);
    }
  } catch (const StartError& error) {
    report(AgentMessage::Failed,
           FieldWriter().u32(static_cast<std::uint32_t>(error.exit_status())).text(error.what()));
    begin_end();
  } catch (const Error& error) {
    report(AgentMessage::Failed, FieldWriter().u32(kStatusFailure).text(error.what()));
    begin_end();
  }
}

void Agent::add_streams(StartedPe started, std::uint32_t pe) {
  if (started.out.is_open()) {
    streams_.push_back({.pipe = std::move(started.out), .pe = pe, .number = STDOUT_FILENO});
    streams_.push_back({.pipe = std::move(started.err), .pe = pe, .number = STDERR_FILENO});
  }
}

void Agent::handle_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    // The agent itself is asked to end (by sshd, or by an administrator): so does the job here.
    if (info.ssi_signo != SIGCHLD) {
      begin_end();
    }
  }
  reap();
}

void Agent::reap() {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    const auto found = running_.find(pid);
    if (found != running_.end()) {  // else an orphan that a PE left to us
      report(AgentMessage::Exited, FieldWriter()
                                       .u32(found->second)
                                       .u32(static_cast<std::uint32_t>(pid))
                                       .u32(static_cast<std::uint32_t>(wait_status)));
      running_.erase(found);
    }
  }
}

void Agent::read_streams(const std::vector<pollfd>& entries, std::size_t first) {
  for (std::size_t i = entries.size(); i > first; --i) {  // backwards, as closed ones are erased
    const std::size_t index = i - 1 - first;
    if (entries[i - 1].revents != 0 && !read_stream(streams_[index])) {
      streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
}

bool Agent::read_stream(const Stream& stream) {
  std::array<std::byte, kOutputChunkBytes> bytes;  // not zeroed: read fills what is used
  const ssize_t count = ::read(stream.pipe.get(), bytes.data(), bytes.size());
  if (count > 0) {
    report(AgentMessage::Output, FieldWriter()
                                     .u32(stream.pe)
                                     .u32(stream.number)
                                     .raw(std::span(bytes).first(static_cast<std::size_t>(count))));
  }
  return count > 0 || (count < 0 && errno == EINTR);
}

void Agent::signal_pes(int signal_number) {
  has_terminated_ = has_terminated_ || signal_number == SIGTERM;
  for (const auto& [pid, pe] : running_) {
    ::kill(-pid, signal_number);
  }
}

void Agent::begin_end() {
  if (kill_deadline_) {
    return;
  }
  const std::uint32_t grace_ms = job_ ? job_->grace_ms : 0;
  kill_deadline_ = Clock::now() + std::chrono::milliseconds(grace_ms);
  for (const pid_t pid : descendants()) {
    // One SIGTERM each: a program may take the second one for an order to end at once.
    if (!has_terminated_ || !running_.contains(::getpgid(pid))) {
      ::kill(pid, SIGTERM);
    }
  }
  signal_descendants(SIGCONT);  // a stopped process sees SIGTERM only then
}

void Agent::check_deadlines() {
  if (kill_deadline_ && Clock::now() >= *kill_deadline_) {
    signal_descendants(SIGKILL);
  }
}

// All PEs have ended, and so has what they left behind, or its time is over.
bool Agent::is_finished() {
  if (!job_ || !running_.empty()) {
    return false;
  }
  if (!leftover_deadline_) {
    leftover_deadline_ = Clock::now() + kLeftoverGrace;
  }
  return (streams_.empty() && descendants().empty()) || Clock::now() >= *leftover_deadline_;
}

void Agent::finish() {
  kill_descendants(kKillLimit);
  if (job_) {
    remove_leftover_pages(*job_);
  }
  if (!is_link_open_) {
    std::error_code code;  // weft-run is dead and cannot remove it
    if (job_ && !job_->private_directory.empty()) {
      std::filesystem::remove_all(job_->private_directory, code);
    }
    return;
  }
  const auto deadline = Clock::now() + kKillLimit;
  while (link_.has_unsent() && bootstrap::wait_ready(link_.output(), POLLOUT, deadline)) {
    link_.flush();
  }
}

}  // namespace

int run_agent(Connection link, const Inherited& inherited) {
  try {
    return Agent(std::move(link), inherited).run();
  } catch (const std::exception& error) {
    say_now(fmt::format("the agent stops: {}", error.what()));
    kill_descendants(kKillLimit);
    return kStatusFailure;
  }
}

namespace {

// Does for an agent on another host what weft-run does for its own: what a killed agent leaves
// behind falls to this process.
int guard(pid_t agent, const Inherited& inherited) {
  ::close(STDIN_FILENO);  // the link is the agent's alone
  ::close(STDOUT_FILENO);
  ::pthread_sigmask(SIG_SETMASK, &inherited.signal_mask, nullptr);
  int wait_status = 0;
  while (::waitpid(agent, &wait_status, 0) < 0 && errno == EINTR) {
  }
  kill_descendants(kKillLimit);
  remove_leftover_pages(
      {});  // what the job's settings were is gone with the agent; its environment is ours
  return exit_status_of(wait_status);
}

}  // namespace

int run_remote_agent(const Inherited& inherited) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t agent = ::fork();
  if (agent < 0) {
    fail("fork of the agent failed: {}", errno_words(errno));
  }
  if (agent > 0) {
    return guard(agent, inherited);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  FileDescriptor input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  FileDescriptor output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  // What writes to standard output by mistake must not break the link.
  if (!null.is_open() || ::dup2(null.get(), STDIN_FILENO) < 0 ||
      ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    fail("the agent cannot set up its streams: {}", errno_words(errno));
  }
  return run_agent(Connection(std::move(input), std::move(output), kAgentFrameBytesMax), inherited);
}

}  // namespace weft::run
