// What the kernel says of another process: whether it still runs, and what /proc/PID/stat has
// (proc_pid_stat(5)).
//
// Any thread; nothing is kept. A process may go while it is read: then there is nothing, and no error.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

struct ProcessStat {
  char state = 0;
  std::int64_t parent = 0;
  std::uint64_t start_ticks = 0;  // since the machine started; a number used again has another one

  // A zombie is one too.
  [[nodiscard]] bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// Pure. Empty for what is cut short.
[[nodiscard]] std::optional<ProcessStat> parse_process_stat(std::string_view text);

// Empty if there is no such process (any more), or no /proc.
[[nodiscard]] std::optional<ProcessStat> read_process_stat(std::int64_t pid);

// False once the process has ended, reaped or not. A few microseconds: slow paths only.
[[nodiscard]] bool is_process_alive(std::int64_t pid);

// So that a number given to another process is noticed. 0 if there is no such process, or no /proc.
[[nodiscard]] std::uint64_t process_start_ticks(std::int64_t pid);

}  // namespace weft
