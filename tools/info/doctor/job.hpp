// The doctor as one PE of a job, through the public interface: how it joins, and bringing together
// what all found.
//
// Threads: one.
#pragma once

#include <weft/weft.h>

#include <array>
#include <vector>

#include "src/base/config.hpp"
#include "tools/info/doctor/finding.hpp"

namespace weft::info {

// Whether a launcher started this process as one of several PEs.
[[nodiscard]] bool is_job(const Config& config);

// What the steps before this one found, from standard input.
[[nodiscard]] std::vector<Finding> read_earlier_findings();

// Throws Error with the library's own sentence if `status` is an error; returns it otherwise.
int check(int status);

// In the symmetric heap: what a PE says of itself. Texts end with a zero.
struct Notice {
  std::array<char, 256> host{};
  std::array<char, 32768> findings{};  // of this PE, as JSON
};

// Collective. PE 0 adds what the others found, with their names. `notice` is symmetric. Throws
// Error.
void tell_findings(Notice& notice, const std::vector<Finding>& earlier, const Reporter& reporter);

}  // namespace weft::info
