// The memory of a PE by cudaMalloc, which peers map by CUDA's IPC handles; and what is said where a
// GPU is full, with either kind of memory.
//
// Threads: as Segments. Errors: Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/gpu/segments.hpp"

namespace weft::gpu {

[[nodiscard]] std::unique_ptr<Segments> make_ipc_segments(const Device& device,
                                                          const SegmentPlan& plan);

// What the GPU has, for a message.
[[nodiscard]] std::string memory_words(const Device& device);
[[noreturn]] void fail_allocation(const Device& device,
                                  const SegmentPlan& plan,
                                  std::string_view why);

}  // namespace weft::gpu
