// Warns of jobs whose PEs never join: a program that was built with another OpenSHMEM or MPI starts
// under weft-run as so many jobs of one PE, each of which gives the answers of one PE.
//
// A command like hostname joins no job either, and that is right. So it warns only where the
// program asks for another implementation's library, or where oshrun started it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "src/base/clock.hpp"
#include "tools/run/options.hpp"

namespace weft::run {

// The library of another OpenSHMEM or MPI that the file of `program` names, for example
// "liboshmem.so"; empty if it names none, or cannot be read. `program` is searched in PATH as
// execvp does.
[[nodiscard]] std::string other_library_of(const std::string& program);

class UnjoinedWatch {
 public:
  // `pe_count` PEs are about to be started.
  UnjoinedWatch(const Options& options, std::uint32_t pe_count);

  // When check() may have something to say before the job's end; max(): never.
  [[nodiscard]] Clock::time_point deadline() const {
    return is_done_ ? Clock::time_point::max() : deadline_;
  }

  // The warning, once, if there is one. `is_over`: all PEs have ended.
  [[nodiscard]] std::optional<std::string> check(bool has_any_joined, bool is_over);

 private:
  std::string program_;
  std::string library_;
  std::uint32_t pe_count_;
  bool is_done_;
  Clock::time_point deadline_;
};

}  // namespace weft::run
