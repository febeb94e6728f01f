// The table of knobs and how text becomes a value. Knows no environment but the variables that
// start with LOOM_.
//
// Threads: any; reads the environment, which nobody may change meanwhile.
#include "loom/src/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace loom {
namespace {

constexpr double kMicro = 1e3;
constexpr double kMilli = 1e6;

constexpr std::array kKnobs{
    Knob{"nodes", &Settings::node_count, 1, 1, 64, 1, "nodes of the fabric"},
    Knob{"nics-per-node", &Settings::nics_per_node, 4, 1, 64, 1, "NICs of each node"},
    Knob{"gbits", &Settings::rate_bits_per_s, 100, 0.001, 10000, 1e9,
         "rate of each NIC in each direction, Gbit/s"},
    Knob{"latency-us", &Settings::latency_ns, 15, 0, 1e6, kMicro, "one way, first byte, us"},
    Knob{"jitter-us", &Settings::jitter_ns, 3, 0, 1e6, kMicro, "added to it at random, us"},
    Knob{"first-packet-us", &Settings::first_packet_ns, 0, 0, 1e7, kMicro,
         "added to the first operation between two endpoints, us"},
    Knob{"handshake", &Settings::handshake, 0, 0, 1, 1,
         "1: the first operation waits until its target makes progress"},
    Knob{"mtu-bytes", &Settings::mtu_bytes, 8192, 256, 65536, 1, "bytes of a packet"},
    Knob{"packet-overhead-bytes", &Settings::packet_overhead_bytes, 64, 0, 1024, 1,
         "headers of a packet"},
    Knob{"backlog-kib", &Settings::backlog_bytes, 64, 1, 1 << 20, 1024,
         "a receiving NIC with more than this queued holds up its senders, KiB"},
    Knob{"incast-senders", &Settings::incast_senders, 0, 0, 64, 1,
         "with so many senders at once a receiving NIC slows down; 0: never"},
    Knob{"incast-percent", &Settings::incast_percent, 100, 1, 100, 1, "to this part of its rate"},
    Knob{"timeout-ms", &Settings::timeout_ns, 500, 1, 1e6, kMilli,
         "an operation that gets nowhere fails after it, ms"},
    Knob{"transmit-depth", &Settings::transmit_depth, 1024, 1, 65536, 1,
         "operations in flight of an endpoint"},
    Knob{"receive-depth", &Settings::receive_depth, 4096, 1, 65536, 1,
         "receives posted to an endpoint"},
    Knob{"queue-entries", &Settings::queue_entries, 0, 0, 1U << 20U, 1,
         "entries of a completion queue that names no size; 0: as the real one has"},
    Knob{"strict-queues", &Settings::strict_queues, 1, 0, 2, 1,
         "a full completion queue of efa-direct 0: delays; 1: breaks its endpoints; 2: loses "
         "entries without a word"},
    Knob{"claims-guard", &Settings::claims_guard, 1, 0, 1, 1,
         "0: efa-direct says FI_RM_DISABLED; the real one says FI_RM_ENABLED although its queues "
         "overrun"},
    Knob{"libfabric", &Settings::libfabric, 2.6, 1.17, 2.7, 100,
         "version whose providers are emulated, 1.17 to 1.22 or 2.0 to 2.7"},
    Knob{"direct-nodes", &Settings::direct_nodes, 64, 0, 64, 1,
         "the first so many nodes of persona efa have efa-direct, the others only efa"},
    Knob{"efa-shm", &Settings::efa_shm, 1, 0, 1, 1,
         "0: efa-rdm has FI_WAIT_FD also beside its shm; else only when that is off "
         "(FI_EFA_ENABLE_SHM_TRANSFER=0, or "
         "hints for FI_REMOTE_COMM without FI_LOCAL_COMM)"},
    Knob{"old-kernel", &Settings::old_kernel, 0, 0, 1, 1,
         "1: fork() as before Linux 5.13: efa ends the process unless it asked for fork support"},
    Knob{"close-order", &Settings::close_order, 1, 0, 1, 1,
         "0: an object may be closed before those that belong to it, such as an endpoint of cxi "
         "before its regions; else that is -FI_EBUSY"},
    Knob{"errors-by-case", &Settings::errors_by_case, 1, 0, 1, 1,
         "0: failures have the same errors on every NIC, not those of the real ones"},
    Knob{"known-peers", &Settings::known_peers, 1, 0, 1, 1,
         "1: efa-direct refuses RMA of an endpoint whose address the target has not inserted"},
    Knob{"unsolicited", &Settings::unsolicited, 1, 0, 1, 1,
         "0: immediate data takes a posted receive of efa-direct, as without the device's "
         "unsolicited write receive"},
    Knob{"receiver-retries", &Settings::receiver_retries, 7, 0, 7, 1,
         "tries for a receiver without a buffer; 7: without end"},
    Knob{"inject-write-bytes", &Settings::inject_write_bytes, 0, 0, 256, 1,
         "writes up to this size may be injected"},
    Knob{"shredded", &Settings::shredded, 0, 0, 1, 1,
         "1: the cells of an operation arrive in random order"},
    Knob{"seed", &Settings::seed, 1, 0, 4294967295.0, 1, "of everything random"},
};

}  // namespace

std::string error_words(int error) {
  return std::strerror(error);  // NOLINT(concurrency-mt-unsafe): glibc's is safe for known errors
}

std::span<const Knob> knobs() {
  return kKnobs;
}

std::string variable_of(const Knob& knob) {
  std::string name = "LOOM_" + std::string(knob.name);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

bool is_on(const char* name, bool otherwise) {
  const auto text = variable(name);
  if (!text) {
    return otherwise;
  }
  std::string lower = *text;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower != "0" && lower != "false" && lower != "no" && lower != "off";
}

Settings default_settings() {
  Settings settings;
  for (const Knob& knob : kKnobs) {
    settings.*knob.field = static_cast<std::uint64_t>(std::llround(knob.fallback * knob.scale));
  }
  return settings;
}

void set(Settings& settings, const Knob& knob, std::string_view text, std::string_view source) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < knob.least || value > knob.most) {
    throw Error(fmt::format("{} is '{}'; it takes a number from {} to {} ({})", source, text,
                            knob.least, knob.most, knob.text));
  }
  settings.*knob.field = static_cast<std::uint64_t>(std::llround(value * knob.scale));
}

Settings settings_from_environment() {
  Settings settings = default_settings();
  for (const Knob& knob : kKnobs) {
    const std::string name = variable_of(knob);
    if (const auto text = variable(name.c_str())) {
      set(settings, knob, *text, name);
    }
  }
  return settings;
}

}  // namespace loom
