// The steps of the doctor. Each runs in a process of its own: what hangs or crashes there (a NIC
// that does not answer, a driver) ends that step and is told, and the others still run.
//
// Threads: one; a step may make its own and ends them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/config.hpp"
#include "tools/info/doctor/finding.hpp"
#include "tools/info/report.hpp"

namespace weft::info {

struct DoctorOptions {
  bool all_nics = false;            // not only those that a PE would use
  std::uint32_t step_limit_s = 60;  // a step that takes longer is ended
  bool with_info = false;           // WEFT_LOG asks for it
  PeQuestion pe;
  bool is_pair =
      false;  // of the step "rails": it was started by itself, as one of two PEs of this machine
};

struct Step {
  std::string_view name;   // "rails"
  std::string_view title;  // what it tries, for people
  void (*run)(const Config& config, const DoctorOptions& options, const Reporter& reporter);
};

// In the order in which they are run.
[[nodiscard]] std::span<const Step> steps();

// Each reports what it finds; what it cannot report it throws as Error, which becomes a problem.
void try_memory(const Config& config, const DoctorOptions& options, const Reporter& reporter);
void try_attach(const Config& config, const DoctorOptions& options, const Reporter& reporter);
void try_rails(const Config& config, const DoctorOptions& options, const Reporter& reporter);
void try_device(const Config& config, const DoctorOptions& options, const Reporter& reporter);

}  // namespace weft::info
