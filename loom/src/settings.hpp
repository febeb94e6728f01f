// What an emulated fabric is like: rates, delays, limits. One value, drawn up once by whoever
// creates the fabric and read by all its processes. The table kKnobs names each entry once;
// environment, command line and help follow from it.
//
// Threads: a value; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace loom {

// Bad input or a machine that lacks something: one sentence that says what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the system calls an errno.
[[nodiscard]] std::string error_words(int error);

// Plain integers only: it lies in shared memory.
struct Settings {
  std::uint64_t node_count = 1;
  std::uint64_t nics_per_node = 4;
  std::uint64_t rate_bits_per_s = 0;
  std::uint64_t latency_ns = 0;       // one way, first byte
  std::uint64_t jitter_ns = 0;        // on top, uniform from 0; shredded: heavy-tailed
  std::uint64_t first_packet_ns = 0;  // on top for the first operation between two endpoints
  std::uint64_t handshake = 0;        // 1: it also waits until the target makes progress
  std::uint64_t mtu_bytes = 0;
  std::uint64_t packet_overhead_bytes = 0;
  std::uint64_t backlog_bytes =
      0;  // a receiving NIC with more than this queued holds up its senders
  std::uint64_t incast_senders = 0;  // from so many senders at once on, 0: never
  std::uint64_t incast_percent = 0;  // a receiving NIC has this part of its rate
  std::uint64_t timeout_ns = 0;      // an operation that gets nowhere fails after it
  std::uint64_t transmit_depth = 0;  // operations in flight of an endpoint; then -FI_EAGAIN
  std::uint64_t receive_depth = 0;
  std::uint64_t queue_entries = 0;  // of a completion queue that names no size
  std::uint64_t strict_queues =
      0;  // what a full completion queue does where none is guarded: Overrun
  std::uint64_t claims_guard = 0;    // 1: such queues are said to be guarded all the same
  std::uint64_t errors_by_case = 0;  // 1: errors by their cause and the NIC (failures.hpp)
  std::uint64_t direct_nodes = 0;    // the first so many have efa-direct beside efa
  std::uint64_t efa_shm = 0;         // 1: efa's shm is on unless it is turned off as in reality
  std::uint64_t libfabric = 0;       // emulated version: version_of()
  std::uint64_t old_kernel = 0;      // 1: fork() as before Linux 5.13
  std::uint64_t close_order = 0;     // 1: nothing is closed before what belongs to it
  std::uint64_t known_peers = 0;  // 1: RMA is for endpoints whose address the target has inserted
  std::uint64_t unsolicited = 0;  // 0: immediate data with a write needs a posted buffer
  std::uint64_t receiver_retries = 0;  // for a receiver without a buffer; 7: without end
  std::uint64_t inject_write_bytes = 0;
  std::uint64_t shredded = 0;  // 1: cells of an operation arrive in random order
  std::uint64_t seed = 0;
  std::uint64_t topology = 0;  // find_topology(); 0: none
};

// Of a completion queue that nobody guards (Settings::strict_queues).
enum class Overrun : std::uint64_t {
  Delays,  // as if it were guarded
  Breaks,  // its endpoints, with an error
  Loses,   // what has no room, without a word
};

// As in Settings::libfabric: 2.6 is 260, 1.22 is 122.
constexpr std::uint64_t version_of(std::uint64_t major, std::uint64_t minor) {
  return 100 * major + (minor < 10 ? 10 * minor : minor);
}

// One entry: "--latency-us 15" of `loom run` is LOOM_LATENCY_US=15 in the environment.
struct Knob {
  std::string_view name;  // "latency-us"
  std::uint64_t Settings::* field;
  double fallback;
  double least;
  double most;
  double scale;           // from the unit in the name to the field's
  std::string_view text;  // for --help
};

[[nodiscard]] std::span<const Knob> knobs();

// "LOOM_LATENCY_US"
[[nodiscard]] std::string variable_of(const Knob& knob);

// Every knob's fallback.
[[nodiscard]] Settings default_settings();

// Sets one entry from text. Throws Error if it is no number or out of range; `source` is how the
// user named it.
void set(Settings& settings, const Knob& knob, std::string_view text, std::string_view source);

// Fallbacks, and what the environment says. Throws Error.
[[nodiscard]] Settings settings_from_environment();

// A variable; empty optional if it is unset or empty.
[[nodiscard]] std::optional<std::string> variable(const char* name);

// As fi_param_get_bool reads one: 0, false, no and off mean false, whatever else true.
[[nodiscard]] bool is_on(const char* name, bool otherwise);

}  // namespace loom
