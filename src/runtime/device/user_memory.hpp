// GPU memory that the program has allocated itself: windows, which are registered with this PE's
// rails, and memory that all PEs have made symmetric, which is in the heap.
//
// Threads: windows as windows.hpp; adopted memory by one thread at a time, as a collective call.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/heap/device_heap.hpp"
#include "src/runtime/collective_calls.hpp"
#include "src/runtime/device/heap_growth.hpp"
#include "src/runtime/device/windows.hpp"

namespace weft::runtime {

class AdoptedMemory {
 public:
  struct Parts {
    heap::DeviceHeap& heap;
    HeapGrowth& growth;
    const CollectiveCalls& calls;
    // Waits for what kernels have posted before it, on behalf of the function that it is given.
    std::function<void(std::string_view)> quiet;
  };

  explicit AdoptedMemory(Parts parts) : with_(std::move(parts)) {}

  // Makes memory of the program a chunk of the heap. Collective. Returns its symmetric address:
  // another mapping of it. Throws Error, on all PEs; nothing has then changed.
  [[nodiscard]] void* add(std::span<std::byte> memory);
  // Ends that. Collective; no kernel uses it any more. Throws Error.
  void remove(void* address);

 private:
  struct Entry {
    heap::Chunk chunk;
    const std::byte* memory = nullptr;
  };

  void check(std::span<const std::byte> memory) const;

  const Parts with_;
  std::vector<Entry> entries_;
};

struct UserMemory {
  UserMemory(DeviceWindows::Parts window_parts, AdoptedMemory::Parts adopted_parts)
      : windows(std::move(window_parts)), adopted(std::move(adopted_parts)) {}

  DeviceWindows windows;
  AdoptedMemory adopted;
};

}  // namespace weft::runtime
