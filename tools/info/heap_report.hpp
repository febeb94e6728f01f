// What heaps a PE would get, and whether this machine's limits allow them. Pure but for its
// arguments.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/base/config.hpp"
#include "tools/info/host_limits.hpp"
#include "tools/info/memory_limits.hpp"

namespace weft::info {

struct HeapReport {
  std::uint64_t heap_bytes = 0;         // WEFT_HEAP_SIZE
  std::uint64_t device_heap_bytes = 0;  // WEFT_DEVICE_HEAP_SIZE
  std::string device_memory;            // WEFT_DEVICE_MEMORY
  std::uint32_t pe_count = 1;           // of this node
  std::string huge_pages;               // the setting
  std::string pages_got;                // by a segment like the heap: "small pages", ...
  bool may_lock = false;                // an RDMA NIC may register a heap
  MemoryLimits memory;
};

// `is_privileged`: CAP_IPC_LOCK, with which the limit does not count.
[[nodiscard]] bool may_lock(const Limit& memlock, std::uint64_t bytes, bool is_privileged);
// Of this process, from `status` (/proc/self/status but in tests).
[[nodiscard]] bool ignores_memlock(const std::string& status = "/proc/self/status");

[[nodiscard]] HeapReport make_heap_report(const Config& config,
                                          std::uint32_t pe_count,
                                          const Limit& memlock);

[[nodiscard]] std::string heap_text(const HeapReport& report);
[[nodiscard]] nlohmann::ordered_json heap_json(const HeapReport& report);

}  // namespace weft::info
