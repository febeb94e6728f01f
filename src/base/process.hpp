// The kernel's information about another process: whether it still runs, and the fields of
// /proc/PID/stat (proc_pid_stat(5)).
//
// Any thread; nothing is cached. A process may exit while it is read: then the result is empty, not
// an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

struct ProcessStat {
  char state = 0;
  std::int64_t parent = 0;
  std::uint64_t start_ticks = 0;  // since boot; distinguishes processes that reuse a pid

  // A zombie has ended, too.
  [[nodiscard]] bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// Pure. Empty if the text is truncated.
[[nodiscard]] std::optional<ProcessStat> parse_process_stat(std::string_view text);

// Empty if the process does not exist (any more), or without /proc.
[[nodiscard]] std::optional<ProcessStat> read_process_stat(std::int64_t pid);

// False once the process has ended, reaped or not. A few microseconds: slow paths only.
[[nodiscard]] bool is_process_alive(std::int64_t pid);

// Detects that a process id was reused. 0 if there is no such process, or no /proc.
[[nodiscard]] std::uint64_t process_start_ticks(std::int64_t pid);

}  // namespace weft
