// The commands of `loom`: run a program on emulated nodes, show what the NICs do, and break them.
// main.cpp gives each its options.
//
// Threads: one. All throw Error for what the user has to change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/cli/nodes.hpp"
#include "loom/src/segment.hpp"

namespace loom {

struct RunOptions {
  Job job;
  Settings settings;
  bool keeps_going = false;  // a failed process does not end the others
};

// Returns the exit status: 0, or that of the first process that failed.
[[nodiscard]] int run(RunOptions options);

// Whose fabric a command means: the one named, that of LOOM_JOB, or the only one there is.
[[nodiscard]] Segment& find_fabric(const std::string& job);

// "node0/rdmap79s0", "rdmap79s0" (of every node) or "all".
[[nodiscard]] std::vector<std::uint32_t> find_nics(const Segment& segment, const std::string& text);

void cut(Segment& segment, const std::string& nics);
// Undoes cut, slow, error and delay.
void heal(Segment& segment, const std::string& nics);
// To that part of its rate, 0.001 to 1.
void slow(Segment& segment, const std::string& nics, double part);
// That part of its operations fails, 0 to 1.
void add_errors(Segment& segment, const std::string& nics, double part);
void delay(Segment& segment, const std::string& nics, double us);
// The NICs of that rank do nothing for so long.
void stall(Segment& segment, std::uint32_t rank, double seconds);
void show(const Segment& segment);

}  // namespace loom
