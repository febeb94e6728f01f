// The device memory of a PE and of its node's peers as its GPU sees them: own memory is allocated once and
// offered, that of a peer is mapped at a slot.
//
// With virtual memory management (CUDA driver API, "Virtual Memory Management") all slots lie at one stride
// in one reserved range, so that a peer's address is an addition; the handle is a file descriptor, which
// peers take over through pidfd_getfd(2), or a fabric handle. With CUDA's older IPC handles the mappings lie
// anywhere.
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

// How a PE offers its memory; a plain value that travels as bytes.
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
  // `whose` is for the error's sentence.
  virtual std::byte* map(std::uint32_t slot, const SegmentOffer& offer, std::string_view whose) = 0;
  // Everybody has mapped: the descriptor that was offered may go.
  virtual void close_offer() = 0;
  // From one slot to the next; 0 if there is no such distance.
  [[nodiscard]] virtual std::uint64_t stride() const = 0;
};

struct SegmentPlan {
  std::uint64_t bytes = 0;
  std::uint32_t slot_count = 1;
  std::uint32_t my_slot = 0;
  MemoryKind kind = MemoryKind::Virtual;
};

// Of zeroed memory. Throws OutOfMemory if the GPU has not so much.
[[nodiscard]] std::unique_ptr<Segments> make_segments(const Device& device,
                                                      const SegmentPlan& plan);

}  // namespace weft::gpu
