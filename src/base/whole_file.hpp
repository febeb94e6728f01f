// Reads a small file in one go, for what the kernel writes about itself under /proc and /sys.
//
// Any thread; nothing is kept. Such a file may go at any moment, also between open and read, when read(2)
// answers ESRCH or ENODEV. A std::ifstream throws there as soon as it is read through an iterator, so what
// describes another process or a device is read by this.
#pragma once

#include <optional>
#include <string>

namespace weft {

// Up to the end, from the descriptor's position; empty when a read fails.
[[nodiscard]] std::optional<std::string> read_whole(int file);

// Empty when there is no such file, when it may not be read, or when it goes meanwhile; errno says which.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace weft
