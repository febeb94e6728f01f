// Faults: each is a value in the shared memory, which the NICs look at with every operation.
//
// Threads: one; the values are relaxed, as they order nothing.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "loom/cli/commands.hpp"
#include "loom/src/fabric_link.hpp"
#include "loom/src/persona.hpp"

namespace loom {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

const Persona& persona_of(const Segment& segment) {
  const Persona* persona = find_persona(segment.persona.data());
  if (persona == nullptr) {
    throw Error(fmt::format("this fabric has the persona '{}', which this Loom does not know",
                            segment.persona.data()));
  }
  return *persona;
}

std::string name_of(const Segment& segment, std::size_t nic) {
  const std::size_t per_node = segment.settings.nics_per_node;
  return fmt::format("node{}/{}", nic / per_node, nic_name(persona_of(segment), nic % per_node));
}

std::vector<std::string> fabrics() {
  constexpr std::string_view kEnd = ".fabric";
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(default_folder(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kEnd)) {
      names.push_back(name.substr(0, name.size() - kEnd.size()));
    }
  }
  std::ranges::sort(names);
  return names;
}

double checked(double value, double least, double most, const char* what) {
  if (!(value >= least && value <= most)) {
    throw Error(fmt::format("{} takes a number from {} to {}, not {}", what, least, most, value));
  }
  return value;
}

template <typename Change>
void change(Segment& segment, const std::string& nics, Change&& change_one) {
  for (const std::uint32_t index : find_nics(segment, nics)) {
    change_one(segment.nics[index]);
  }
}

}  // namespace

Segment& find_fabric(const std::string& job) {
  std::string name = job.empty() ? variable("LOOM_JOB").value_or("") : job;
  if (name.empty()) {
    const auto names = fabrics();
    if (names.size() != 1) {
      throw Error(
          names.empty()
              ? fmt::format("there is no fabric in {}; `loom run` makes one", default_folder())
              : fmt::format("there are several fabrics ({}); choose one with --job",
                            fmt::join(names, ", ")));
    }
    name = names.front();
  }
  return open_segment(segment_path(default_folder(), name));
}

std::vector<std::uint32_t> find_nics(const Segment& segment, const std::string& text) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t nic = 0; nic < segment.nic_count(); ++nic) {
    const std::string name = name_of(segment, nic);
    if (text == "all" || name == text || name.substr(name.find('/') + 1) == text) {
      found.push_back(nic);
    }
  }
  if (found.empty()) {
    throw Error(fmt::format("there is no NIC '{}' in this fabric; it has {} to {}", text,
                            name_of(segment, 0), name_of(segment, segment.nic_count() - 1)));
  }
  return found;
}

void cut(Segment& segment, const std::string& nics) {
  change(segment, nics, [](Nic& nic) { nic.state.store(NicState::Cut, kRelaxed); });
}

void heal(Segment& segment, const std::string& nics) {
  change(segment, nics, [](Nic& nic) {
    nic.rate_permille.store(1000, kRelaxed);
    nic.error_per_million.store(0, kRelaxed);
    nic.delay_ns.store(0, kRelaxed);
    nic.state.store(NicState::Up, kRelaxed);
  });
}

void slow(Segment& segment, const std::string& nics, double part) {
  const auto permille =
      static_cast<std::uint32_t>(std::lround(checked(part, 0.001, 1, "slow") * 1000));
  change(segment, nics, [&](Nic& nic) { nic.rate_permille.store(permille, kRelaxed); });
}

void add_errors(Segment& segment, const std::string& nics, double part) {
  const auto per_million =
      static_cast<std::uint32_t>(std::lround(checked(part, 0, 1, "error") * 1e6));
  change(segment, nics, [&](Nic& nic) { nic.error_per_million.store(per_million, kRelaxed); });
}

void delay(Segment& segment, const std::string& nics, double us) {
  const auto ns = static_cast<std::uint64_t>(std::llround(checked(us, 0, 1e7, "delay") * 1e3));
  change(segment, nics, [&](Nic& nic) { nic.delay_ns.store(ns, kRelaxed); });
}

void stall(Segment& segment, std::uint32_t rank, double seconds) {
  const auto ns =
      static_cast<std::uint64_t>(std::llround(checked(seconds, 0, 3600, "stall") * 1e9));
  bool is_known = false;
  for (ProcessSlot& slot : segment.processes) {
    if (is_alive(look(slot.pid)) && look(slot.rank) == rank) {
      slot.stalled_until.store(now_ns() + ns, kRelaxed);
      is_known = true;
    }
  }
  if (!is_known) {
    throw Error(fmt::format("no process of this fabric is rank {}", rank));
  }
}

void show(const Segment& segment) {
  fmt::print("{} NICs of {} nodes, emulated {}, {:.6g} Gbit/s each\n", segment.nic_count(),
             segment.settings.node_count, segment.persona.data(),
             static_cast<double>(segment.settings.rate_bits_per_s) / 1e9);
  fmt::print("{:<20} {:<5} {:>6} {:>10} {:>16} {:>16}\n", "NIC", "state", "rate", "errors/M",
             "TX bytes", "RX bytes");
  for (std::size_t index = 0; index < segment.nic_count(); ++index) {
    const Nic& nic = segment.nics[index];
    fmt::print("{:<20} {:<5} {:>5.1f}% {:>10} {:>16} {:>16}\n", name_of(segment, index),
               look(nic.state) == NicState::Up ? "up" : "cut", look(nic.rate_permille) / 10.0,
               look(nic.error_per_million), look(nic.counters.tx_bytes),
               look(nic.counters.rx_bytes));
  }
}

}  // namespace loom
