// A step in a process of its own: this program again, with --doctor-step. What it writes comes back
// line by line; when its time is up it is ended with all that it has started.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft::info {

struct ChildPlan {
  std::vector<std::string> arguments;  // without the program's name
  std::string input;                   // what it finds on standard input
  std::uint32_t limit_s = 60;
  bool with_info = false;  // shows the library's lines of the level info
};

struct ChildEnd {
  bool was_late = false;  // ended by us
  int status = 0;         // of exit(); -1 after a signal
  int signal = 0;
};

// Runs it and gives each line of its standard output to `on_line`. Its standard error is a file,
// which it may read, and which is printed at its end. Throws Error if it cannot be started.
[[nodiscard]] ChildEnd run_child(const ChildPlan& plan,
                                 const std::function<void(const std::string&)>& on_line);

}  // namespace weft::info
