// What weft-run was started with and changes for itself. The programs that it starts (PEs, ssh,
// srun) get it back.
//
// One thread. README.md lists all that a process inherits, and who does what about it.
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace weft::run {

struct Inherited {
  sigset_t signal_mask{};
  struct sigaction on_broken_pipe{};
  struct sigaction on_child{};
  rlimit open_files{};
};

// Blocks `signals`; ignores SIGPIPE, because a write then tells what happened; no longer ignores
// SIGCHLD, because the kernel would reap children itself and nobody would hear how they ended;
// raises the limit of open files; opens standard streams that are closed. Call it before anything
// else is opened or started.
[[nodiscard]] Inherited take_over(const sigset_t& signals);

// In a child, before exec.
void give_back(const Inherited& inherited) noexcept;

}  // namespace weft::run
