// Starts one PE: fork, namespaces, binding, environment, exec. Called by the agent, which has one
// thread, so that the child may do anything between fork and exec.
//
// The child dies with the agent (PR_SET_PDEATHSIG), and leads a process group of its own.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <sys/types.h>

#include "src/base/file_descriptor.hpp"
#include "tools/run/binding.hpp"
#include "tools/run/inherited.hpp"
#include "tools/run/job.hpp"

namespace weft::run {

// Carries the status that weft-run returns for it: 127 not found, 126 not executable, 1 otherwise.
class StartError : public std::runtime_error {
 public:
  StartError(int exit_status, const std::string& message)
      : std::runtime_error(message), exit_status_(exit_status) {}

  [[nodiscard]] int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

struct StartedPe {
  pid_t pid = 0;
  FileDescriptor out;  // not open unless the job captures output
  FileDescriptor err;
};

// `index` counts the PEs of this agent; `inherited` is what weft-run itself was started with.
// Throws StartError if the command cannot be run.
[[nodiscard]] StartedPe start_pe(const Job& job,
                                 std::uint32_t index,
                                 const CoreBinder& binder,
                                 const Inherited& inherited);

}  // namespace weft::run
