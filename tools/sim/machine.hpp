// A machine to simulate: its shape, and values that were measured or are assumptions, each with its
// source. Read from JSON, a file of the user's or one that weft-sim has by name (machines/).
//
// Plain values; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sim/setup.hpp"

namespace weft::sim {

struct Value {
  double value = 0;
  std::string source;
};

// A value that machines may have, by name.
struct Key {
  std::string_view name;
  double usual = 0;  // where the machine has none
  std::string_view text;
};

// Without those of a library and policy: LIBRARY.floor_us.POLICY, LIBRARY.start_us.POLICY.
[[nodiscard]] std::span<const Key> keys();

struct Machine {
  std::string name;
  std::string text;
  std::uint32_t pes_per_node = 0;
  std::uint32_t nics_per_pe = 0;
  std::map<std::string, Value, std::less<>> values;

  // The machine's, or the usual one.
  [[nodiscard]] double value(std::string_view key) const;
  void set(const std::string& key, double number, std::string source);
};

// Throws Error: what is wrong in which machine. `origin` is for messages.
[[nodiscard]] Machine parse_machine(const std::string& json, const std::string& origin);
// One of the names, else a file.
[[nodiscard]] Machine load_machine(const std::string& name_or_file);
[[nodiscard]] std::string machine_json(const Machine& machine);

struct BuiltIn {
  std::string_view name;
  std::string_view json;
};

[[nodiscard]] std::span<const BuiltIn> built_in_machines();

[[nodiscard]] std::string_view name_of(Library library);

// The machine's NICs under a library. `efficiency` is part of the rate where all send to all.
[[nodiscard]] NicShape nic_of(const Machine& machine, Library library);

// What a call costs that is no NIC's: T = max(floor, start + max(NICs, copies)).
struct Start {
  double floor_us = 0;
  double start_us = 0;
};

[[nodiscard]] Start start_of(const Machine& machine, Library library, std::string_view policy);

}  // namespace weft::sim
