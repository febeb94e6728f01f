// What the command line of weft-sim says.
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/sim/prediction.hpp"

namespace weft::sim {

struct Options {
  bool lists_machines = false;
  std::string shown_machine;  // with lists_machines: print this one
  bool is_put_bw = false;
  std::string machine;
  Question question;
  std::vector<std::string> policies;
  std::vector<std::uint64_t> sizes;
  bool sizes_are_totals = false;  // of all that a PE sends; else to each peer
  std::string compare;
  std::string calibrate;
  std::string fit;
  std::string rows;
  std::string write;
  bool prints_csv = false;
};

// Throws Error. None if help or the version was printed.
[[nodiscard]] std::optional<Options> parse_command_line(int argc, char** argv);

}  // namespace weft::sim
