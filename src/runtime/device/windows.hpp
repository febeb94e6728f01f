// GPU memory of the program that is registered with the rails: the local side of puts and gets,
// outside the device heap. Where a rail does not register it, transfers are staged as those of any
// other memory.
//
// Threads: any. Not collective.
// Invariant: windows do not overlap, and lie outside the addresses of the heap.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "src/gpu/user_memory.hpp"
#include "src/heap/chunk_map.hpp"

namespace weft::runtime {

class DeviceWindows {
 public:
  struct Parts {
    std::int32_t gpu = -1;            // this PE's
    std::span<const std::byte> heap;  // all addresses that it may grow into
    std::function<gpu::UserMemoryInfo(std::span<const std::byte>)> look = gpu::find_user_memory;
    // Registers memory with all rails or none. Returns why not; empty if they have.
    std::function<std::string(std::span<std::byte>)> connect;
    std::function<void(std::span<std::byte>)> disconnect;
    // Why all windows are staged here, for example because no NIC reaches the GPU; `connect` is
    // then not called.
    std::string staged_because;
    bool must = false;  // WEFT_DEVICE_DIRECT=on
  };

  explicit DeviceWindows(Parts parts) : with_(std::move(parts)) {}

  DeviceWindows(const DeviceWindows&) = delete;
  DeviceWindows& operator=(const DeviceWindows&) = delete;
  // Ends the registrations.
  ~DeviceWindows();

  // Throws Error (InvalidArgument) for memory that cannot be a window; nothing has then changed.
  // `name` is the function that the user called.
  void add(std::string_view name, std::span<std::byte> memory);
  // The window that starts at `address`; no operation uses it any more. Throws Error.
  void remove(std::string_view name, const void* address);

  [[nodiscard]] bool has(const void* address) const;

  // The windows that the rails have registered, by address.
  [[nodiscard]] const heap::ChunkMap& registered() const { return registered_; }

 private:
  struct Window {
    std::uint64_t bytes = 0;
    std::uint64_t id = 0;  // of the allocation
    bool is_registered = false;
  };

  void check_place(std::string_view name, std::span<std::byte> memory) const;
  void check_windows(std::string_view name, std::span<std::byte> memory) const;
  [[nodiscard]] bool is_freed(std::uint64_t address, const Window& window) const;
  void end(std::uint64_t address, const Window& window);

  const Parts with_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Window> windows_;  // by address
  heap::ChunkMap registered_;
};

}  // namespace weft::runtime
