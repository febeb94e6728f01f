#include "src/base/config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/rail_policies.hpp"
#include "src/base/units.hpp"

extern "C" {
extern char** environ;  // NOLINT: POSIX defines the name
}

namespace weft {
namespace {

// Where a later check knows more to say about it.
constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::min();

constexpr std::array kSettings{
    Setting{"WEFT_AUTHENTICATE", &Config::authenticate, "", "none", "none|frames",
            "frames: each message between nodes carries a signature, and a PE refuses those that "
            "no other PE of the job sent; puts and gets by the NIC are not signed "
            "(docs/SECURITY.md). The same on all PEs."},
    Setting{"WEFT_BOOTSTRAP", &Config::bootstrap, "", "auto",
            "auto|tcp|pmix|pmi|slurm|torchrun|single",
            "How PEs find each other; auto detects the launcher. single makes each process a job "
            "of its own."},
    Setting{"WEFT_BOOTSTRAP_FAMILY", &Config::bootstrap_family, "", "any", "any|ipv4|ipv6",
            "Address family of the addresses of this host that PEs use to find each other. "
            "Applies on PE 0, or on the maker of a unique id, to which the others connect."},
    Setting{"WEFT_BOOTSTRAP_INTERFACES", &Config::bootstrap_interfaces, "", "", "",
            "The interfaces of those addresses, by name prefix: eth,ib. =eth0 is exactly that "
            "one, ^docker,virbr excludes those. Empty: all that are up, the loopback only if "
            "there is no other."},
    Setting{"WEFT_BOOTSTRAP_TIMEOUT",
            &Config::bootstrap_timeout_s,
            "s",
            "60",
            "",
            "How long init waits for all PEs before it names the missing ones.",
            {},
            1},
    Setting{"WEFT_CHECK_COLLECTIVES", &Config::check_collectives, "", "auto", "auto|yes|no",
            "Python's collectives compare their arguments between the PEs before they begin, and "
            "raise weft.Mismatch if they differ: auto for CPU memory of teams that share memory, "
            "yes for all. The same on all PEs."},
    Setting{"WEFT_CHECK_LEVEL", &Config::check_level, "", "1", "0|1|2",
            "Checks of arguments: 0 none; 1 PE, address and alignment; 2 also overlap and the "
            "bounds of allocated blocks."},
    Setting{"WEFT_COUNTERS_DIR", &Config::counters_dir, "", "/dev/shm", "",
            "Folder of the counter files: each PE keeps its counters in a file that others can "
            "read while it runs (docs/COUNTERS.md); off for none."},
    Setting{"WEFT_DEVICE_CARRY_BYTES_MAX", &Config::device_carry_bytes_max, "bytes", "2K", "",
            "Puts to other nodes by warps and blocks up to this size are copied by the GPU's "
            "threads into the payloads of commands, 512 bytes each; larger ones by a copy engine. "
            "With GPUDirect a NIC fetches all that are larger than one payload."},
    Setting{"WEFT_DEVICE_DIRECT", &Config::device_direct, "", "auto", "auto|on|off",
            "GPUDirect RDMA between GPUs of different nodes: auto if all rails of both PEs can "
            "access their GPU's memory; on makes weft_device_init fail if one cannot; off stages "
            "all data through the host."},
    Setting{"WEFT_DEVICE_HEAP_MAX", &Config::device_heap_max, "bytes", "128G", "",
            "Maximum size of the symmetric heap on each PE's GPU, limited to the GPU's memory; "
            "addresses for it are reserved at init. The smallest value of all PEs applies. 0: "
            "the heap does not grow."},
    Setting{"WEFT_DEVICE_HEAP_SIZE", &Config::device_heap_size, "bytes", "1G", "",
            "Initial size of the symmetric heap on each PE's GPU, allocated by weft_device_init; "
            "the same on all PEs. It grows when more is allocated."},
    Setting{"WEFT_DEVICE_MEMORY", &Config::device_memory, "", "auto", "auto|vmm|ipc",
            "How device heaps are allocated and shared in a node: vmm, virtual memory management "
            "with peers at a fixed stride of addresses, or ipc, cudaMalloc and IPC handles; "
            "auto: vmm if the GPU supports it."},
    Setting{"WEFT_DEVICE_SHARED", &Config::device_shared, "", "no", "",
            "Allow several PEs to use one GPU, for tests: kernels that wait for each other then "
            "take turns."},
    Setting{"WEFT_EAGER_BYTES_MAX", &Config::eager_bytes_max, "bytes", "1K", "",
            "A put_signal, or a segment of a list, up to this size is sent inside a message "
            "(eager)."},
    Setting{"WEFT_FAULTS", &Config::faults, "", "", "",
            "For tests: faults to inject, for example seed=7,reorder=0.3,delay=0.1,refuse=0.05."},
    Setting{"WEFT_GPU", &Config::gpu, "", "auto", "",
            "The GPU whose PCI switch determines this PE's NICs: an address (0000:1b:00.0), "
            "none, or auto: the GPU that is known at init (docs/GPU.md)."},
    Setting{"WEFT_HEAP_SIZE", &Config::heap_size, "bytes", "256M", "",
            "Size of the symmetric heap of each PE; the same on all PEs. Pages cost nothing until "
            "they are touched."},
    Setting{"WEFT_HUGE_PAGES", &Config::huge_pages, "", "auto", "auto|on|off",
            "Huge pages for the heap: auto asks the kernel for transparent ones, which it gives "
            "if shmem_enabled allows; on takes reserved ones (vm.nr_hugepages) first; off for "
            "none."},
    Setting{"WEFT_JOB_ID", &Config::job_id, "", "", "",
            "Name of the job, the same on all PEs; set by weft-run."},
    Setting{"WEFT_JOB_SECRET", &Config::job_secret, "", "", "",
            "Secret with which a PE proves to the rendezvous that it belongs to the job; set by "
            "weft-run, and by you for torchrun and plain srun on several hosts."},
    Setting{"WEFT_LIBFABRIC", &Config::libfabric, "", "", "",
            "Path of the libfabric to open; empty: libfabric.so.1 as the loader finds it, then "
            "those of EFA's and Slingshot's installers."},
    Setting{"WEFT_LIBPMIX", &Config::libpmix, "", "", "",
            "Path of the libpmix to open under a launcher with PMIx; empty: libpmix.so.2 as the "
            "loader finds it, then usual installation folders."},
    Setting{"WEFT_LOG", &Config::log, "", "warn", "error|warn|info|debug", "Log level on stderr."},
    Setting{"WEFT_LOG_FILE", &Config::log_file, "", "", "",
            "File to which the log is appended; then only errors are also printed on stderr. %h "
            "stands for the host, %p for the process."},
    Setting{
        "WEFT_MOE_TIMEOUT", &Config::moe_timeout_s, "s", "0", "",
        "How long a dispatch or combine waits for a rank, in MoE exchanges that are made without "
        "a timeout of their own, and in the plugins for vLLM and SGLang. 0: 1800 until the first "
        "has completed, 100 from then on."},
    Setting{"WEFT_NICS", &Config::nics, "", "", "",
            "NICs, local addresses or networks (10.200.0.0/24) that may become rails, separated by "
            "commas; empty for all that are up. Loopback is used only if it is named here or there "
            "is no other."},
    Setting{"WEFT_NICS_SHARED", &Config::nics_shared, "", "no", "",
            "Every PE of a node opens all NICs, instead of dividing them among the PEs."},
    Setting{"WEFT_NODE_LOCAL", &Config::node_local, "", "mapped", "mapped|cma",
            "How PEs of a node access each other's heaps: mapped loads and stores, or cma copies "
            "by the kernel (cross-memory attach), for comparisons."},
    Setting{"WEFT_NODE_SIZE", &Config::node_size, "PEs", "0", "",
            "Treat each group of this many consecutive PEs as a node of its own; 0 for the real "
            "nodes."},
    Setting{"WEFT_ON_PEER_LOST", &Config::on_peer_lost, "", "end", "end|report",
            "What a PE does when another one has died: end its process, or report it, by "
            "WEFT_PEER_LOST (weft.PeerLost) from calls that need that PE. With report, weft-run "
            "lets the others continue."},
    Setting{
        "WEFT_PE", &Config::pe, "", "-1", "", "This PE's number; set by weft-run.", {}, kAnyNumber},
    Setting{"WEFT_PEER_LOST_MS",
            &Config::peer_lost_ms,
            "ms",
            "5000",
            "",
            "A peer that no rail has reached for this long is lost permanently.",
            {},
            1},
    Setting{"WEFT_PE_COUNT",
            &Config::pe_count,
            "",
            "-1",
            "",
            "The number of PEs; set by weft-run.",
            {},
            kAnyNumber},
    Setting{"WEFT_PROGRESS_THREAD", &Config::progress_thread, "", "yes", "",
            "Run the progress thread; without it only calls into the library make progress."},
    Setting{"WEFT_PROVIDER", &Config::provider, "", "auto", "",
            "libfabric provider of the rails, for example tcp, efa, cxi; auto takes the best one "
            "available."},
    Setting{"WEFT_PROXY_CORES", &Config::proxy_cores, "", "", "",
            "Cores for the proxy threads of a machine's PEs, which carry out commands of "
            "kernels, for example 8-11,24: assigned in turn. Empty: the system chooses."},
    Setting{"WEFT_PROXY_NAP_US", &Config::proxy_nap_us, "us", "50", "",
            "Longest sleep of an idle proxy thread, and so the longest delay of the first "
            "command after a pause. 0: it polls all the time."},
    Setting{"WEFT_PROXY_SPIN_US", &Config::proxy_spin_us, "us", "200", "",
            "How long a proxy thread polls after the last activity before it begins to sleep."},
    Setting{"WEFT_PROXY_WAKE_US", &Config::proxy_wake_us, "us", "20", "",
            "How long signals and small data from other nodes wait for a GPU thread that waits "
            "in a Weft call; then Weft starts a kernel that applies them. If there was no such "
            "thread last time, the kernel starts at once."},
    Setting{"WEFT_PUBLISH_BYTES_MAX",
            &Config::publish_bytes_max,
            "bytes",
            "-1",
            "",
            "For tuning runs: collectives on one node copy data up to this size into a shared "
            "buffer, and read larger data in place; -1 for the table in "
            "src/collectives/choice.hpp.",
            {},
            -1},
    Setting{"WEFT_RAIL_COUNT_MAX",
            &Config::rail_count_max,
            "",
            "32",
            "",
            "Maximum number of rails that a PE opens, 1 to 32.",
            {},
            1},
    Setting{"WEFT_RAIL_POLICY", &Config::rail_policy, "", kDefaultRailPolicy, "",
            "Which rail of this PE and which rail of the peer carry a piece; docs/PERFORMANCE.md "
            "compares them.",
            kRailPolicies},
    Setting{"WEFT_RAIL_STALL_MS",
            &Config::rail_stall_ms,
            "ms",
            "400",
            "",
            "A rail with outstanding operations that completes nothing for this long is checked, "
            "and taken out of use if it is dead.",
            {},
            1},
    Setting{"WEFT_RENDEZVOUS", &Config::rendezvous, "", "", "",
            "Where PEs meet: host:port or unix:/path; set by weft-run."},
    Setting{"WEFT_SPIN_US", &Config::spin_us, "us", "50", "",
            "How long a wait polls before it yields the core; 0 if PEs outnumber the cores."},
    Setting{"WEFT_STRIPE_BYTES_MIN",
            &Config::stripe_bytes_min,
            "bytes",
            "16K",
            "",
            "The smallest piece into which a large operation is split over rails.",
            {},
            1024},
    Setting{
        "WEFT_SYMMETRIC_GLOBALS", &Config::symmetric_globals, "", "auto", "auto|yes|no",
        "Whether the program's global and static variables are symmetric; auto: in programs that "
        "begin with shmem_init."},
    Setting{"WEFT_TIMEOUT_S", &Config::timeout_s, "s", "0", "",
            "A wait of a host call or of a kernel that lasts longer ends the job, with a message "
            "that says what it waited for; 0 for never."},
    Setting{"WEFT_WAIT_REPORT", &Config::wait_report_s, "s", "10", "",
            "A wait of a host call or of a kernel without progress for this long is reported, "
            "with the place and what or whom it waits for; 0 for never."},
    Setting{"WEFT_WARMUP", &Config::warmup, "", "yes", "",
            "At init, open the connections that the policy may use: all, if a PE has at most 128, "
            "else those to the PEs with which collectives exchange. Others open at first use, or "
            "by weft_warmup."},
};

constexpr std::array<std::string_view, 4> kToolVariables{"WEFT_LAB", "WEFT_LAB_DIR", "WEFT_RUN",
                                                         "WEFT_RUN_PID"};

[[noreturn]] void fail_value(const Setting& setting,
                             std::string_view value,
                             std::string_view want) {
  fail(Status::InvalidArgument, "{}={}: {}", setting.name, shown(value), want);
}

void check_characters(const Setting& setting, std::string_view value) {
  if (value.ends_with('\r')) {
    fail_value(setting, value,
               "it ends with a carriage return: the script or file that sets it has line ends of "
               "Windows; convert them (sed -i 's/\\r$//' FILE)");
  }
  if (shown(value) != value) {
    fail_value(setting, value, "it has a control character");
  }
}

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> parts;
  while (!choices.empty()) {
    const std::size_t bar = std::min(choices.find('|'), choices.size());
    parts.push_back(choices.substr(0, bar));
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return parts;
}

void check_choice(const Setting& setting, std::string_view value) {
  const auto choices = choices_of(setting);
  if (!choices.empty() && std::ranges::find(choices, value) == choices.end()) {
    fail_value(setting, value, fmt::format("no such value; use {}", fmt::join(choices, ", ")));
  }
}

bool parse_switch(const Setting& setting, std::string_view value) {
  if (value == "yes" || value == "1" || value == "true" || value == "on") {
    return true;
  }
  if (value == "no" || value == "0" || value == "false" || value == "off") {
    return false;
  }
  fail_value(setting, value, "use yes or no");
}

std::int64_t parse_number(const Setting& setting, std::string_view value) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc{} || end != value.data() + value.size()) {
    fail_value(setting, value,
               fmt::format("a whole number is wanted{}{}", setting.unit.empty() ? "" : ", in ",
                           setting.unit));
  }
  // Times are multiplied and stored in 32 bits.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (number < setting.least || (number > kMost && setting.least != kAnyNumber)) {
    fail_value(setting, value, fmt::format("use {} to {}", setting.least, kMost));
  }
  return number;
}

std::uint64_t parse_size(const Setting& setting, std::string_view value) {
  std::uint64_t bytes = 0;
  try {
    bytes = parse_bytes(value);
  } catch (const Error& error) {
    fail_value(setting, value, error.what());
  }
  if (bytes < static_cast<std::uint64_t>(setting.least)) {
    fail_value(setting, value, fmt::format("at least {} is wanted", format_bytes(setting.least)));
  }
  return bytes;
}

void assign(Config& config, const Setting& setting, std::string_view value) {
  check_characters(setting, value);
  check_choice(setting, value);

  struct Visitor {
    Config& config;
    const Setting& setting;
    std::string_view value;

    void operator()(std::string Config::* field) const { config.*field = value; }

    void operator()(std::uint64_t Config::* field) const {
      config.*field = parse_size(setting, value);
    }

    void operator()(std::int64_t Config::* field) const {
      config.*field = parse_number(setting, value);
    }

    void operator()(bool Config::* field) const { config.*field = parse_switch(setting, value); }
  };

  std::visit(Visitor{config, setting, value}, setting.field);
}

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

bool is_known(std::string_view name) {
  return std::ranges::find(kSettings, name, &Setting::name) != kSettings.end() ||
         std::ranges::find(kToolVariables, name) != kToolVariables.end();
}

}  // namespace

std::vector<std::string_view> choices_of(const Setting& setting) {
  return setting.explained.empty() ? split_choices(setting.choices)
                                   : choice_names(setting.explained);
}

std::span<const Setting> settings() {
  return kSettings;
}

std::span<const std::string_view> tool_variables() {
  return kToolVariables;
}

Config load_config(const Lookup& lookup) {
  Config config;
  for (const Setting& setting : kSettings) {
    assign(config, setting, setting.default_value.empty() ? "" : setting.default_value);
    if (const auto value = lookup(setting.name); value && !value->empty()) {
      assign(config, setting, *value);
    }
  }
  return config;
}

Config load_config_from_environment() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with("WEFT_") && !is_known(name)) {
      fail(Status::InvalidArgument,
           "{}: no such variable; did you mean {}? weft-info --env lists all", name,
           nearest_setting(name));
    }
  }
  return load_config([](std::string_view name) -> std::optional<std::string> {
    // concurrency: init is single-threaded with respect to setenv, as POSIX requires.
    const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

std::string_view nearest_setting(std::string_view name) {
  return std::ranges::min_element(
             kSettings, {},
             [name](const Setting& setting) { return edit_distance(name, setting.name); })
      ->name;
}

std::string settings_markdown() {
  std::string text =
      "# Configuration\n\nGenerated from the table in `src/base/config.cpp` by `weft-info --env "
      "--markdown`; do not edit.\nSizes take K, M, G, T (powers of 1024) and fractions (1.5G). An "
      "unknown `WEFT_` variable "
      "is "
      "an error that names the nearest one.\n\n| variable | default | unit | values | what it does "
      "|\n|---|---|---|---|---|\n";
  for (const Setting& setting : kSettings) {
    text +=
        fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name,
                    setting.default_value.empty() ? "" : fmt::format("`{}`", setting.default_value),
                    setting.unit, fmt::join(choices_of(setting), ", "), setting.text);
  }
  for (const Setting& setting : kSettings) {
    if (!setting.explained.empty()) {
      text += fmt::format("\n## Values of {}\n\n", setting.name);
      for (const Choice& choice : setting.explained) {
        text += fmt::format("- `{}`: {}\n", choice.name, choice.text);
      }
    }
  }
  return text;
}

}  // namespace weft
