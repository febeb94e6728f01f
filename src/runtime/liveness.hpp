// Whether a process of this node still runs, and what this machine's memory can hold: the kernel's
// side of faults.
//
// Any thread. Nothing is kept: each call asks the kernel.
#pragma once

#include <cstdint>
#include <string>

namespace weft::runtime {

// False once the process has ended, reaped or not. A few microseconds: slow paths only.
[[nodiscard]] bool is_process_alive(std::int64_t pid);

// When the process started, in clock ticks since the machine did (field 22 of /proc/PID/stat), so that a
// number given to another process is noticed. 0 if there is no such process, or no /proc.
[[nodiscard]] std::uint64_t process_start_ticks(std::int64_t pid);

// Bytes that this process may have at most: the machine's memory, or its cgroup's limit if lower.
// `root` is "" but in tests. 0 if neither can be read.
[[nodiscard]] std::uint64_t memory_limit(const std::string& root = "");

}  // namespace weft::runtime
