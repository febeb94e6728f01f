// The device memory of a PE and of its node's peers as its GPU sees them: the PE's own memory is allocated once and
// offered, a peer's memory is mapped at a slot.
//
// With virtual memory management (CUDA driver API, "Virtual Memory Management") all slots have one stride in one
// reserved range, so that a peer's address is computed by an addition. The handle is a file descriptor, which peers
// duplicate with pidfd_getfd(2), or a fabric handle. With CUDA's older IPC handles the mappings have arbitrary
// addresses.
//
// Threads: one at a time; constant once all peers are mapped. Errors: Error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "src/gpu/device.hpp"

namespace weft::gpu {

enum class HandleKind : std::uint32_t { Descriptor, Fabric, Ipc };

// The data with which a PE offers its memory; a plain value that is sent as bytes.
struct SegmentOffer {
  HandleKind kind = HandleKind::Descriptor;
  std::int32_t descriptor = -1;
  std::int64_t pid = 0;
  std::uint64_t bytes = 0;
  std::array<std::uint8_t, 64> handle{};  // Fabric, Ipc
};

enum class MemoryKind : std::uint8_t { Virtual, Ipc };

class Segments {
 public:
  Segments() = default;
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;
  virtual ~Segments() = default;

  [[nodiscard]] virtual std::byte* base() const = 0;  // own memory
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual SegmentOffer offer() const = 0;
  // `whose` is for the error message.
  virtual std::byte* map(std::uint32_t slot, const SegmentOffer& offer, std::string_view whose) = 0;
  // All peers have mapped the memory: the offered descriptor may be closed.
  virtual void close_offer() = 0;
  // The distance from one slot to the next; 0 if it is not constant.
  [[nodiscard]] virtual std::uint64_t stride() const = 0;
};

struct SegmentPlan {
  std::uint64_t bytes = 0;
  std::uint32_t slot_count = 1;
  std::uint32_t my_slot = 0;
  MemoryKind kind = MemoryKind::Virtual;
};

// Allocates zeroed memory. Throws OutOfMemory if the GPU does not have enough.
[[nodiscard]] std::unique_ptr<Segments> make_segments(const Device& device,
                                                      const SegmentPlan& plan);

}  // namespace weft::gpu
