// All configuration: one table, one struct. Read once at init from variables WEFT_*. An unknown
// variable is an error that names the nearest known one. docs/ENV.md and `weft-info --env` are
// generated from the table.
//
// To add a setting: a field here, a row in config.cpp, `scripts/generate_docs`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/choice.hpp"

namespace weft {

struct Config {
  // Job and bootstrap.
  std::string bootstrap;
  std::string rendezvous;
  std::string job_id;
  std::string job_secret;
  std::int64_t pe = -1;
  std::int64_t pe_count = -1;
  std::int64_t bootstrap_timeout_s = 0;
  std::string bootstrap_interfaces;
  std::string bootstrap_family;
  std::int64_t node_size = 0;
  std::string libpmix;
  std::string on_peer_lost;
  // Memory.
  std::uint64_t heap_size = 0;
  std::string huge_pages;
  std::string symmetric_globals;
  std::string node_local;
  std::uint64_t device_heap_max = 0;
  std::uint64_t device_heap_size = 0;
  std::string device_memory;
  bool device_shared = false;
  std::uint64_t device_carry_bytes_max = 0;
  std::string device_direct;
  std::string proxy_cores;
  std::int64_t proxy_nap_us = 0;
  std::int64_t proxy_spin_us = 0;
  std::int64_t proxy_wake_us = 0;
  // Rails.
  std::string libfabric;
  std::string provider;
  std::string nics;
  bool nics_shared = false;
  std::int64_t rail_count_max = 0;
  std::string rail_policy;
  std::string gpu;
  bool warmup = true;
  std::uint64_t stripe_bytes_min = 0;
  std::uint64_t eager_bytes_max = 0;
  std::int64_t rail_stall_ms = 0;
  std::int64_t peer_lost_ms = 0;
  std::string authenticate;
  // Progress and waiting.
  bool progress_thread = true;
  std::int64_t spin_us = 0;
  std::int64_t timeout_s = 0;
  std::int64_t wait_report_s = 0;
  std::int64_t moe_timeout_s = 0;
  // Diagnostics.
  std::int64_t publish_bytes_max = -1;
  std::string log;
  std::string log_file;
  std::string counters_dir;
  std::string faults;
  std::int64_t check_level = 0;
  std::string check_collectives;
};

// One row of the table.
struct Setting {
  using Field = std::variant<std::string Config::*,
                             std::uint64_t Config::*,
                             std::int64_t Config::*,
                             bool Config::*>;
  std::string_view name;           // "WEFT_HEAP_SIZE"
  Field field;                     // where the value is stored; uint64 fields are sizes ("64MiB")
  std::string_view unit;           // "bytes", "ms", "s", "us", "" for names and switches
  std::string_view default_value;  // as a user would write it
  std::string_view choices;        // "a|b|c", or "" if any value of the type is accepted
  std::string_view text;           // one sentence
  std::span<const Choice> explained{};  // replaces `choices`: each with its own sentence
  std::int64_t least = 0;               // of a number or a size
};

// The accepted values; empty if any value of its type is accepted.
[[nodiscard]] std::vector<std::string_view> choices_of(const Setting& setting);

// The table, sorted as docs/ENV.md prints it.
[[nodiscard]] std::span<const Setting> settings();

// Variables of the tools (weft-run, weft-lab), not of the library; known, never an error.
[[nodiscard]] std::span<const std::string_view> tool_variables();

// Reads an environment variable; empty if it is not set. Injected, so that tests need no process
// environment.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

// Defaults, overridden by the variables. Throws Error (InvalidArgument) for a value that does not
// parse.
[[nodiscard]] Config load_config(const Lookup& lookup);

// Reads the process environment; throws for an unknown WEFT_ variable and names the nearest one.
[[nodiscard]] Config load_config_from_environment();

// The name in the table with the smallest edit distance to `name`. Pure.
[[nodiscard]] std::string_view nearest_setting(std::string_view name);

// The text of docs/ENV.md, generated from the table. Pure.
[[nodiscard]] std::string settings_markdown();

}  // namespace weft
