// The memory that this machine can provide, so that a heap that cannot fit is rejected with an
// error message instead of by the kernel's OOM killer.
//
// Any thread. Nothing is cached: each call asks the kernel.
#pragma once

#include <cstdint>
#include <string>

namespace weft::runtime {

// The most bytes that this process may have: the machine's memory, or the lowest limit of its
// control groups. 0 if neither can be read. `root` is "" except in tests.
[[nodiscard]] std::uint64_t memory_limit(const std::string& root = "");

}  // namespace weft::runtime
