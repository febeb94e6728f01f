// Which rails of peers the rails of this PE did not reach, from the library's own lines on standard
// error. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/info/doctor/finding.hpp"

namespace weft::info {

// "rail 0 (nic0, 10.0.0.1) does not reach rail 1 of PE 1 (10.0.0.2): Connection refused; continuing
// on the other rails"
struct Unreached {
  unsigned int rail = 0;
  std::string nic;  // "nic0"
  unsigned int peer_rail = 0;
  int pe = 0;
  std::string where;  // "10.0.0.2"; empty where the provider has no readable address
  std::string reason;
};

// Those that PE `pe` has named in `log` and not reached again since. Pure.
[[nodiscard]] std::vector<Unreached> find_unreached(std::string_view log, int pe);

// The library's lines so far: the doctor keeps each step's standard error in a file. Empty if it is
// none.
[[nodiscard]] std::string read_own_log();

// One problem for each rail of a peer that none of `rail_count` rails reaches, and one for each
// rail that does not reach some others.
void report_unreached(std::vector<Unreached> unreached,
                      std::size_t rail_count,
                      const Reporter& reporter);

}  // namespace weft::info
