// Which PE runs where: in blocks, in the order of the hosts. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::run {

struct Host {
  std::string name;
  std::uint32_t slot_count = 0;  // the most PEs that it takes; 0: no limit of its own
  bool is_this_machine = false;  // its PEs need no other shell
};

// "a,b:4" -> two hosts. Throws Error (InvalidArgument).
[[nodiscard]] std::vector<Host> parse_hosts(std::string_view text);

// The lines of a hostfile: "name", "name:4" or "name slots=4"; '#' begins a comment.
[[nodiscard]] std::vector<Host> parse_hostfile(std::string_view text);

// How many PEs each host gets. `pes_per_host` 0 means an equal share, rounded up, for hosts without
// a slot count. Throws Error (InvalidArgument) if the hosts do not take that many.
[[nodiscard]] std::vector<std::uint32_t> place(const std::vector<Host>& hosts,
                                               std::uint32_t pe_count,
                                               std::uint32_t pes_per_host);

}  // namespace weft::run
