// Human-readable sizes: "64MiB", "1G".
//
// Pure functions: any thread may call them. Memory sizes are powers of 1024, with or without the
// "i"; rates and measured GB (1e9) are not handled here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// "64MiB", "64M", "4k", "1.5G", "1048576" -> bytes. K/M/G/T with or without "iB" or "B" are powers
// of 1024, as in NVSHMEM's and OpenSHMEM's size options. Throws Error for anything else.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text);

// The text for a message: control characters are written as "\\r" or "\\x1b", so that they are
// seen.
[[nodiscard]] std::string shown(std::string_view text);

// 67108864 -> "64 MiB", 1500 -> "1500 B": the largest unit that divides it exactly.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

}  // namespace weft
