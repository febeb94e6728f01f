// Running a program on emulated nodes: makes the fabric, starts the nodes, renders counters, and
// ends everything when one process fails or the user says so.
//
// Threads: one.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loom/cli/commands.hpp"
#include "loom/cli/machine_file.hpp"
#include "loom/cli/system_files.hpp"
#include "loom/src/fabric_link.hpp"

namespace loom {
namespace {

constexpr useconds_t kLookUs = 5000;
constexpr std::uint64_t kGraceNs = 2'000'000'000;

volatile std::sig_atomic_t has_failed = 0;
volatile std::sig_atomic_t was_interrupted = 0;

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { has_failed = 1; };
  ::sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = [](int signal) { was_interrupted = signal; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// Fabrics whose runner was killed, with the files of their nodes.
void remove_abandoned(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".fabric") {
      continue;
    }
    try {
      Segment& segment = open_segment(entry.path().string());
      const bool is_abandoned = look(segment.owner) != 0 && !is_used(segment);
      close_segment(segment);
      if (is_abandoned) {
        remove_fabric(entry.path().string());
      }
    } catch (const Error&) {
      continue;  // of another version; not ours to judge
    }
  }
}

class Nodes {
 public:
  Nodes(const RunOptions& options, Separation separation) {
    const std::uint16_t port = free_port();
    for (std::uint32_t node = 0; node < options.job.node_count; ++node) {
      pids_.push_back(start_node(options.job, node, separation, port));
    }
  }

  // False once all have ended.
  [[nodiscard]] bool look_after() {
    int status = 0;
    for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0;
         ended = ::waitpid(-1, &status, WNOHANG)) {
      // Others are what a node whose supervisor was killed has left.
      if (std::erase(pids_, ended) > 0 && status_ == 0) {
        status_ = exit_status(status);
      }
    }
    return !pids_.empty();
  }

  void tell(int signal) const {
    for (const pid_t pid : pids_) {
      ::kill(pid, signal);
    }
  }

  [[nodiscard]] int status() const { return status_; }

 private:
  std::vector<pid_t> pids_;
  int status_ = 0;
};

// Ends with the last process, or with the first that fails.
int wait_for(Nodes& nodes, const RunOptions& options, SystemFiles* files) {
  std::uint64_t told_ns = 0;
  while (nodes.look_after()) {
    const bool has_to_end = was_interrupted != 0 || (has_failed != 0 && !options.keeps_going);
    if (has_to_end && told_ns == 0) {
      told_ns = now_ns();
      nodes.tell(SIGTERM);
    } else if (told_ns != 0 && now_ns() - told_ns > kGraceNs) {
      nodes.tell(SIGTERM);  // a supervisor that is told twice kills
      told_ns = now_ns();
    }
    if (files != nullptr) {
      files->update();
    }
    ::usleep(kLookUs);
  }
  return was_interrupted != 0 ? 128 + was_interrupted : nodes.status();
}

// Where the node's machine is described; empty where it has no topology.
std::string write_machine(const std::string& folder, const std::string& description) {
  if (description.empty()) {
    return "";
  }
  std::filesystem::create_directories(folder);
  std::string path = folder + "/machine.xml";
  std::ofstream(path) << description;
  return path;
}

}  // namespace

int run(RunOptions options) {
  const Persona* persona = find_persona(options.job.persona);
  if (persona == nullptr) {
    throw Error(fmt::format("there is no persona '{}'; the personas are {}", options.job.persona,
                            persona_names()));
  }
  const Topology* topology = topology_of(options.settings.topology);
  const std::string machine =
      topology == nullptr ? "" : describe_machine(*topology, *persona, options.settings);
  const Separation separation = find_separation();
  if (separation == Separation::Full) {
    enter_user_namespace();
  }
  remove_abandoned(options.job.folder);
  const std::string path = segment_path(options.job.folder, options.job.name);
  Segment& segment =
      create_segment(path, persona->name, options.settings, static_cast<std::uint32_t>(::getpid()));
  int status = 0;
  {
    std::unique_ptr<SystemFiles> files;
    const std::string folder = options.job.folder + "/" + options.job.name + ".sys";
    if (separation == Separation::Full) {
      files = std::make_unique<SystemFiles>(folder, *persona, segment);
    }
    options.job.machine_file = write_machine(folder, machine);
    catch_signals();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    Nodes nodes(options, separation);
    status = wait_for(nodes, options, files.get());
    end_descendants();
  }
  remove_fabric(path);
  return status;
}

}  // namespace loom
