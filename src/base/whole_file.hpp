// Reads a small file completely: for the kernel's files under /proc and /sys.
//
// Any thread; nothing is cached. Such a file may disappear at any time, also between open and read;
// read(2) then returns ESRCH or ENODEV. A std::ifstream read through an iterator throws in that
// case, so files that describe another process or a device are read with this.
#pragma once

#include <optional>
#include <string>

namespace weft {

// Reads to the end, from the descriptor's position; empty if a read fails.
[[nodiscard]] std::optional<std::string> read_whole(int file);

// Empty if there is no such file, if it may not be read, or if it disappears meanwhile; see errno.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace weft
