// The step "rails": joins a job as a program does, and writes to a PE of another node through the
// public interface. What it opens is what a program would get, and what it says of failures are the
// library's own sentences.
//
// Started by a launcher (weft-run, mpirun, srun, torchrun), it is one PE of that job, and its
// neighbour is a PE of another node: that tries the cables. Started alone, it becomes a job of two
// PEs of this machine, each as a node of its own: that tries provider and addresses, but over TCP
// the kernel keeps such traffic in the machine.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/fabric/discovery.hpp"
#include "src/topology/node.hpp"
#include "tools/info/doctor/job.hpp"
#include "tools/info/doctor/neighbour_trial.hpp"
#include "tools/info/doctor/rails_plan.hpp"
#include "tools/info/doctor/step.hpp"
#include "tools/info/doctor/unreached.hpp"

namespace weft::info {
namespace {

constexpr std::size_t kBlockBytesMax = std::size_t{2} << 20U;
constexpr const char* kSentence =
    "what the sentence says; weft-info lists NICs, addresses and limits";
// A link that failed is tried again after a quarter of a second.
constexpr std::chrono::milliseconds kSecondTry{600};

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
}

// So that a PE opens these NICs and no others.
void set_nics(const std::vector<std::string>& nics) {
  set("WEFT_NICS", fmt::format("{}", fmt::join(nics, ",")));
  set("WEFT_NICS_SHARED", "yes");
  set("WEFT_RAIL_COUNT_MAX", std::to_string(kRailCountMax));
}

// This process becomes weft-run with two PEs, which write where this one does.
[[noreturn]] void become_two_pes(const DoctorOptions& options) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  for (const char* name : {"WEFT_RENDEZVOUS", "WEFT_JOB_ID", "WEFT_JOB_SECRET", "WEFT_PE",
                           "WEFT_PE_COUNT", "WEFT_RUN_PID"}) {
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  set("WEFT_BOOTSTRAP", "tcp");
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string weft_run = self.parent_path() / "weft-run";
  std::vector<std::string> words{weft_run,
                                 "-n",
                                 "2",
                                 "--lab",
                                 "none",
                                 "--node-size",
                                 "1",
                                 "--",
                                 self,
                                 "--doctor",
                                 "--doctor-step",
                                 "rails",
                                 "--doctor-pair",
                                 "--step-limit",
                                 std::to_string(options.step_limit_s)};
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execv(weft_run.c_str(), argv.data());
  fail("{} cannot be started: {}; it is installed beside weft-info", weft_run, errno_words(errno));
}

void try_alone(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  reporter.trying("asking libfabric for NICs");
  const std::vector<std::string> nics = plan_rails(config, options, reporter);
  if (!nics.empty()) {
    reporter.trying("starting two PEs in this machine");
    set_nics(nics);
    become_two_pes(options);
  }
}

// Lines about single connections are wanted, connections are opened in the trial, and whoever is
// missing is to be named before this step's time is up.
void set_environment(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  if (config.log != "debug") {
    set("WEFT_LOG", "info");
  }
  set("WEFT_WARMUP", "no");
  const std::int64_t limit_s = std::max<std::int64_t>(options.step_limit_s * 3 / 4, 1);
  set("WEFT_BOOTSTRAP_TIMEOUT", std::to_string(std::min(config.bootstrap_timeout_s, limit_s)));
  if (options.is_pair) {
    return;  // its parent has chosen the NICs
  }
  report_down_nics(config, reporter);
  if (options.all_nics) {
    if (const auto nics = plan_rails(config, options, reporter); !nics.empty()) {
      set_nics(nics);
    }
  }
}

// Whom this PE writes to: at the distance at which PE 0 finds another node, so that every PE is the
// neighbour of exactly one.
int find_neighbour() {
  int distance = 1;
  while (weft_node_of(distance) == weft_node_of(0)) {
    ++distance;
  }
  return (weft_pe() + distance) % weft_pe_count();
}

void report_rails(const Config& config, const Reporter& reporter) {
  const std::size_t rail_count = read_rails().size();
  const std::string provider = fabric::discover(config).front().provider;
  const std::string rails = fmt::format("{} rail{}", rail_count, rail_count == 1 ? "" : "s");
  reporter.ok(fmt::format("{} opened with {}, a heap of {} registered with each", rails, provider,
                          format_bytes(config.heap_size)),
              {{"rail_count", rail_count}, {"provider", provider}});
  reporter.summary(fmt::format("{} over {}", rails, provider));
}

// False if the neighbour is not reached at all. Rails that are not reached are problems.
bool connect(NeighbourTrial& trial, const Reporter& reporter) {
  std::string error;
  try {
    trial.connect();
  } catch (const Error& caught) {
    error = caught.what();
  }
  auto unreached = find_unreached(read_own_log(), weft_pe());
  if (!unreached.empty()) {
    std::this_thread::sleep_for(kSecondTry);
    unreached = find_unreached(read_own_log(), weft_pe());
  }
  report_unreached(unreached, read_rails().size(), reporter);
  if (unreached.empty() && !error.empty()) {
    reporter.problem(error, kSentence);
  }
  return error.empty();
}

void write(NeighbourTrial& trial,
           const std::string& who,
           TrialMemory memory,
           const Reporter& reporter) {
  try {
    trial.write(who, memory);
  } catch (const Error& error) {
    reporter.problem(error.what(), kSentence);
  }
}

// `seat` is told only when PE 0 has what this PE found.
void try_rails_of_job(const Config& config,
                      const DoctorOptions& options,
                      const std::vector<Finding>& earlier,
                      const Reporter& reporter) {
  const bool has_rails = weft_node_count() > 1;
  const int neighbour = has_rails ? find_neighbour() : 0;
  NeighbourTrial trial(neighbour, reporter);
  bool is_connected = false;
  if (has_rails) {
    report_rails(config, reporter);
    is_connected = connect(trial, reporter);
  }
  reporter.trying("waiting for the other PEs");
  const std::size_t block_bytes = std::min<std::size_t>(kBlockBytesMax, config.heap_size / 4);
  auto* notice = static_cast<Notice*>(weft_calloc(1, sizeof(Notice) + block_bytes));
  check(notice == nullptr ? WEFT_OUT_OF_MEMORY : WEFT_OK);
  const std::string host = topology::node_identity().hostname;
  host.copy(notice->host.data(), notice->host.size() - 1);
  check(weft_barrier_all());
  if (is_connected && !(options.is_pair && weft_pe() != 0)) {
    std::array<char, sizeof(Notice::host)> name{};
    check(weft_get(name.data(), notice->host.data(), name.size(), neighbour));
    const std::string who = options.is_pair ? "a second PE in this machine"
                                            : fmt::format("PE {} on {}", neighbour, name.data());
    write(trial, who, {reinterpret_cast<std::byte*>(notice + 1), block_bytes}, reporter);
  }
  reporter.trying("waiting for what the other PEs found");
  if (!options.is_pair) {
    tell_findings(*notice, earlier, reporter);
  }
  check(weft_barrier_all());
  reporter.seat(static_cast<std::uint32_t>(weft_pe()));
}

void try_in_job(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  const std::vector<Finding> earlier = read_earlier_findings();
  set_environment(config, options, reporter);
  reporter.trying("joining the other PEs");
  check(weft_init());
  const bool is_one_node = weft_node_count() == 1;
  const bool is_first = weft_pe() == 0;
  try {
    try_rails_of_job(config, options, earlier, reporter);
  } catch (const Error&) {
    // Where rails are lost, so are the collectives over them: that is no second problem.
    if (std::ranges::find(reporter.added(), Grade::Problem, &Finding::grade) ==
        reporter.added().end()) {
      throw;
    }
    return;
  }
  reporter.trying("leaving the job");
  check(weft_finalize());
  if (is_one_node && is_first) {
    reporter.skipped("all PEs of this job are on one node and need no rails; two more try them");
    try_alone(config, options, reporter);
  }
}

}  // namespace

void try_rails(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  if (!is_job(config)) {
    report_down_nics(config, reporter);
    try_alone(config, options, reporter);
    return;
  }
  // The second of a pair shares the first one's output; it speaks only when the first cannot know.
  const Reporter silent(nullptr);
  const bool is_second = options.is_pair && config.pe != 0;
  try_in_job(config, options, is_second ? silent : reporter);
}

}  // namespace weft::info
