// The processes below this one, and their end. A subreaper (prctl(2)) keeps all its descendants
// below itself, also daemons that left their process group, so none can hide from this.
//
// One thread. Linux: reads /proc.
#pragma once

#include <chrono>
#include <vector>

#include <sys/types.h>

namespace weft::run {

// Children, their children and so on; not this process itself. Zombies are left out.
[[nodiscard]] std::vector<pid_t> descendants();

void signal_descendants(int signal_number);

// Waits for the end of a child, kills it after `limit`. Returns its wait status.
int end_child(pid_t pid, std::chrono::milliseconds limit);

// SIGKILL to all, again and again, and reaps them, until none is left or `limit` has passed.
void kill_descendants(std::chrono::milliseconds limit);

}  // namespace weft::run
