#include "tools/run/plan.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/whole_file.hpp"
#include "src/bootstrap/sha256.hpp"
#include "src/bootstrap/slurm_lists.hpp"
#include "tools/run/lab.hpp"
#include "tools/run/placement.hpp"

extern "C" {
extern char** environ;  // NOLINT: the name is POSIX's
}

namespace weft::run {
namespace {

using bootstrap::Address;

// The connection breaks 30 to 40 s after the host has vanished.
constexpr const char* kSshCommand =
    "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -o "
    "ServerAliveCountMax=3";
// A step of one task on one node, beside other steps. Without --exact it has all cores and GPUs
// that the job has there.
constexpr const char* kSrunCommand =
    "srun --quiet --overlap --mpi=none --nodes=1 --ntasks=1 --nodelist";

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string lab_name(const Options& options) {
  if (options.lab.empty() && options.hosts.empty() && options.hostfile.empty()) {
    return variable("WEFT_LAB").value_or("");
  }
  return options.lab == "none" ? "" : options.lab;
}

// Only its owner can reach a socket in it; file systems are shared by all hosts of a lab, networks
// are not.
std::string make_private_directory() {
  std::string path = variable("XDG_RUNTIME_DIR").value_or("/tmp") + "/weft-run-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    fail("cannot make the directory {} for the rendezvous: {}", path, errno_words(errno));
  }
  return path;
}

MachinePlan& local_machine(Plan& plan) {
  plan.machines.emplace_back();
  return plan.machines.back();
}

void plan_here(Plan& plan) {
  MachinePlan& machine = local_machine(plan);
  machine.job.tasks.reserve(plan.pe_count);
  for (std::uint32_t pe = 0; pe < plan.pe_count; ++pe) {
    machine.job.tasks.push_back({.pe = pe, .host = {}, .net_namespace = {}});
  }
  plan.rendezvous = {.host = "127.0.0.1", .port = 0, .path = {}};
}

void plan_lab(Plan& plan, const Options& options, const std::string& name) {
  const Lab lab = read_lab(name);
  std::vector<Host> hosts;
  hosts.reserve(lab.hosts.size());
  for (const LabHost& host : lab.hosts) {
    hosts.push_back({.name = host.name});
  }
  const auto counts = place(hosts, plan.pe_count, options.pes_per_host);
  MachinePlan& machine = local_machine(plan);
  machine.job.user_namespace = lab.user_namespace;
  std::uint32_t pe = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (std::uint32_t k = 0; k < counts[i]; ++k) {
      machine.job.tasks.push_back(
          {.pe = pe++, .host = lab.hosts[i].name, .net_namespace = lab.hosts[i].net_namespace});
    }
  }
  if (options.rendezvous.empty()) {
    machine.job.private_directory = make_private_directory();
    plan.rendezvous = {
        .host = {}, .port = 0, .path = machine.job.private_directory + "/rendezvous"};
  }
}

std::vector<Host> read_hosts(const Options& options) {
  std::vector<Host> hosts;
  if (options.hostfile.empty()) {
    hosts = parse_hosts(options.hosts);
  } else if (const auto text = read_whole_file(options.hostfile)) {
    hosts = parse_hostfile(*text);
  } else {
    fail(Status::InvalidArgument, "cannot read the hostfile {}: {}", options.hostfile,
         errno_words(errno));
  }
  for (Host& host : hosts) {
    host.is_this_machine = host.name == "localhost";
  }
  return hosts;
}

// A Slurm allocation is around this process (salloc, sbatch, or a step). A lab that is named, or
// that this process was started in, is inside of it.
bool has_allocation() {
  return variable("SLURM_JOB_ID") && variable("SLURM_JOB_NODELIST");
}

// The address of this machine that the other hosts can reach.
Address reachable_address(const std::vector<MachinePlan>& machines) {
  for (const MachinePlan& machine : machines) {
    if (machine.host.empty()) {
      continue;
    }
    const std::string name = machine.host.substr(machine.host.find('@') + 1);
    const std::string address = bootstrap::source_host_towards(name);
    if (address.empty()) {
      fail(Status::InvalidArgument,
           "the host '{}' does not resolve here (a name of ssh's own configuration?), so weft-run "
           "cannot tell which of its addresses that host can reach; give one: --rendezvous "
           "ADDRESS:0",
           machine.host);
    }
    return {.host = address, .port = 0, .path = {}};
  }
  return {.host = "127.0.0.1", .port = 0, .path = {}};
}

std::vector<Host> allocated_hosts() {
  std::vector<Host> hosts;
  // Set in batch scripts and steps, which run on a node of the job; salloc's shell does not.
  const std::string own_node = variable("SLURMD_NODENAME").value_or("");
  for (const std::string& name :
       bootstrap::expand_host_list(variable("SLURM_JOB_NODELIST").value_or(""))) {
    hosts.push_back({.name = name, .is_this_machine = name == own_node});
  }
  return hosts;
}

void plan_hosts(Plan& plan, const Options& options, const std::vector<Host>& hosts) {
  const auto counts = place(hosts, plan.pe_count, options.pes_per_host);
  std::uint32_t pe = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (counts[i] == 0) {
      continue;
    }
    MachinePlan machine{.host = hosts[i].is_this_machine ? "" : hosts[i].name, .job = {}};
    for (std::uint32_t k = 0; k < counts[i]; ++k) {
      machine.job.tasks.push_back({.pe = pe++, .host = hosts[i].name, .net_namespace = {}});
    }
    plan.machines.push_back(std::move(machine));
  }
  if (options.rendezvous.empty()) {
    plan.rendezvous = reachable_address(plan.machines);
  }
}

// The number of PEs where the user has not said it: the allocation's tasks, as they lie on its
// nodes. Slurm sets SLURM_TASKS_PER_NODE also where nobody asked for tasks, and it is then the
// number of cores.
void take_allocated_tasks(std::vector<Host>& hosts, const Options& options, Plan& plan) {
  if (options.pes_per_host != 0 || !variable("SLURM_NTASKS")) {
    plan.pe_count = static_cast<std::uint32_t>(hosts.size()) * std::max(options.pes_per_host, 1U);
    return;
  }
  const std::vector<std::uint32_t> tasks =
      bootstrap::expand_tasks_per_node(variable("SLURM_TASKS_PER_NODE").value_or(""));
  if (tasks.size() != hosts.size()) {
    fail(Status::InvalidArgument,
         "SLURM_TASKS_PER_NODE is of {} nodes, and SLURM_JOB_NODELIST has {}; say how many PEs "
         "with -n",
         tasks.size(), hosts.size());
  }
  plan.pe_count = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].slot_count = tasks[i];
    plan.pe_count += tasks[i];
  }
}

void plan_allocation(Plan& plan, const Options& options) {
  plan.remote_shell = kSrunCommand;
  std::vector<Host> hosts = allocated_hosts();
  if (!options.pe_count) {
    take_allocated_tasks(hosts, options, plan);
  }
  plan_hosts(plan, options, hosts);
}

// NAME=VALUE, or NAME with its value here.
std::pair<std::string, std::string> parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  if (name.empty()) {
    fail(Status::InvalidArgument, "--env {}: write NAME=VALUE or NAME", text);
  }
  if (equals != std::string::npos) {
    return {std::move(name), text.substr(equals + 1)};
  }
  const auto value = variable(name);
  if (!value) {
    fail(Status::InvalidArgument, "--env {}: it is not set here; write {}=VALUE", name, name);
  }
  return {std::move(name), *value};
}

// A typing error in a number would otherwise be thousands of processes.
void check_size(const Plan& plan, const Options& options) {
  constexpr std::size_t kPesPerCore = 64;
  constexpr std::size_t kPesAlways = 1024;
  const auto cores = static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  const std::size_t most = std::max(kPesPerCore * cores, kPesAlways);
  for (const MachinePlan& machine : plan.machines) {
    const std::size_t count = machine.job.tasks.size();
    if (machine.host.empty() && count > most && !options.oversubscribes) {
      fail(Status::InvalidArgument,
           "{} PEs on this machine, which has {} cores, are more than {}; if you want that, say "
           "--oversubscribe",
           count, cores, most);
    }
  }
}

using Environment = std::vector<std::pair<std::string, std::string>>;

// Other hosts have their own environment; the user's WEFT_ settings must reach them all the same.
Environment own_settings() {
  const std::set<std::string> not_passed_on{"WEFT_LAB", "WEFT_LAB_DIR", "WEFT_JOB_SECRET"};
  Environment settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (name.starts_with("WEFT_") && equals != std::string::npos && !not_passed_on.contains(name)) {
      settings.emplace_back(name, text.substr(equals + 1));
    }
  }
  return settings;
}

std::uint32_t node_size_of(const Plan& plan, const Options& options) {
  if (options.node_size != 0) {
    return options.node_size;
  }
  if (variable("WEFT_NODE_SIZE")) {
    return 0;  // the user's own setting stays
  }
  // A lab's hosts share one kernel; only the block size tells a PE which others are on its host.
  const auto& tasks = plan.machines.front().job.tasks;
  if (tasks.front().net_namespace.empty()) {
    return 0;
  }
  return static_cast<std::uint32_t>(
      std::ranges::count(tasks, tasks.front().net_namespace, &PeTask::net_namespace));
}

Environment job_environment(const Plan& plan, const Options& options, const Address& rendezvous) {
  Environment environment = own_settings();
  for (const std::string& text : options.environment) {
    environment.push_back(parse_setting(text));
  }
  environment.emplace_back("WEFT_PE_COUNT", std::to_string(plan.pe_count));
  environment.emplace_back("WEFT_RENDEZVOUS", to_string(rendezvous));
  environment.emplace_back("WEFT_JOB_ID", plan.job_id);
  environment.emplace_back("WEFT_JOB_SECRET", plan.secret);
  environment.emplace_back("WEFT_RUN_PID", std::to_string(::getpid()));
  if (options.on_peer_lost != "end") {
    environment.emplace_back("WEFT_ON_PEER_LOST", options.on_peer_lost);
  }
  if (const std::uint32_t node_size = node_size_of(plan, options); node_size != 0) {
    environment.emplace_back("WEFT_NODE_SIZE", std::to_string(node_size));
  }
  return environment;
}

}  // namespace

Plan make_plan(const Options& options) {
  Plan plan;
  plan.pe_count = options.pe_count.value_or(1);
  plan.secret = bootstrap::to_hex(bootstrap::random_digest());
  const bootstrap::Digest random = bootstrap::random_digest();
  plan.job_id = bootstrap::to_hex(std::span(random).first(8));
  if (!options.rendezvous.empty()) {
    plan.rendezvous = bootstrap::parse_address(options.rendezvous);
  }
  const Address chosen = plan.rendezvous;
  plan.remote_shell = kSshCommand;
  if (const std::string lab = lab_name(options); !lab.empty()) {
    plan_lab(plan, options, lab);
  } else if (!options.hosts.empty() || !options.hostfile.empty()) {
    plan_hosts(plan, options, read_hosts(options));
  } else if (has_allocation()) {
    plan_allocation(plan, options);
  } else {
    plan_here(plan);
  }
  check_size(plan, options);
  if (!options.rendezvous.empty()) {
    plan.rendezvous = chosen;
  }
  if (!options.ssh_command.empty()) {
    plan.remote_shell = options.ssh_command;
  }
  for (MachinePlan& machine : plan.machines) {
    Job& job = machine.job;
    job.command = options.command;
    job.directory = machine.host.empty() ? "" : std::filesystem::current_path().string();
    job.binding = parse_binding(options.bind);
    job.grace_ms = static_cast<std::uint32_t>(options.grace_s * 1000);
    job.captures_output = options.prefixes_output || !machine.host.empty();
    // A PE leads a group of its own, which a terminal would stop when it reads.
    job.inherits_stdin = machine.host.empty() && ::isatty(STDIN_FILENO) == 0;
  }
  return plan;
}

void set_job_environment(Plan& plan, const Options& options, const Address& rendezvous) {
  const Environment environment = job_environment(plan, options, rendezvous);
  for (MachinePlan& machine : plan.machines) {
    machine.job.environment = environment;
  }
}

}  // namespace weft::run
