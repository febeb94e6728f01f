// What memory the heaps of a node's PEs may take: what is free, what a control group allows, huge
// pages. Read once; changes nothing. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::info {

struct MemoryLimits {
  std::optional<std::uint64_t> available_bytes;  // the least of what the next two leave
  std::optional<std::uint64_t> free_bytes;       // MemAvailable of /proc/meminfo
  std::optional<std::uint64_t> group_bytes;      // what this control group may still take
  std::optional<std::uint64_t> address_space;    // RLIMIT_AS; empty for unlimited
  std::uint64_t huge_page_bytes = 0;             // 0: none of this size
  std::uint64_t huge_page_free = 0;
  std::string
      transparent_shared;  // "never", "advise", ... for memory like the heap's; "" not known
};

// `root` is "" but in tests.
[[nodiscard]] MemoryLimits read_memory_limits(const std::string& root = "");

// "23368 MiB": rounded down.
[[nodiscard]] std::string mebibytes_text(std::uint64_t bytes);

}  // namespace weft::info
