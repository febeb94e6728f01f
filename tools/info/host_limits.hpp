// What the system lets a PE do: limits and kernel permissions. Read once; changes nothing. One
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::info {

// A resource limit in bytes or a count; empty for unlimited.
struct Limit {
  std::optional<std::uint64_t> soft;
  std::optional<std::uint64_t> hard;
};

struct SharedMemory {
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;
};

struct Permission {
  std::string name;  // "cross-memory attach"
  bool allowed = false;
  std::string detail;  // why, or what would change it
};

struct HostLimits {
  Limit memlock;     // bytes that may be registered with a NIC
  Limit open_files;  // descriptors: a rail takes several for each peer on tcp
  std::optional<SharedMemory> shared_memory;  // /dev/shm; empty when it is not there
  std::vector<Permission> permissions;
};

[[nodiscard]] HostLimits read_host_limits();

// Of the kernel's settings under `proc` (/proc/sys but in tests); `can_attach`: whether reading our
// own memory by process_vm_readv worked.
[[nodiscard]] Permission cross_memory_attach(const std::string& proc, bool can_attach);
[[nodiscard]] Permission user_namespaces(const std::string& proc);

}  // namespace weft::info
