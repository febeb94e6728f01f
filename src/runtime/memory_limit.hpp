// What this machine's memory can hold, so that a heap that cannot fit is refused by a sentence and not by
// the kernel's killer.
//
// Any thread. Nothing is kept: each call asks the kernel.
#pragma once

#include <cstdint>
#include <string>

namespace weft::runtime {

// Bytes that this process may have at most: the machine's memory, or its cgroup's limit if lower.
// `root` is "" but in tests. 0 if neither can be read.
[[nodiscard]] std::uint64_t memory_limit(const std::string& root = "");

}  // namespace weft::runtime
