// The device memory of a PE and of its node's peers as its GPU sees them: the PE's own memory is
// allocated once and offered, a peer's memory is mapped at a slot.
//
// With virtual memory management (CUDA driver API, "Virtual Memory Management") all slots have one
// stride in one reserved range, so that a peer's address is computed by an addition. The handle is
// a file descriptor, which peers duplicate with pidfd_getfd(2), or a fabric handle. With CUDA's
// older IPC handles the mappings have arbitrary addresses. With virtual memory management more
// memory can be mapped later, at addresses that were reserved from the start: a part of each slot.
//
// Threads: one at a time; constant once all peers are mapped, except for parts. Errors: Error.
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
struct DeviceSegmentOffer {
  HandleKind kind = HandleKind::Descriptor;
  std::int32_t descriptor = -1;
  std::int64_t pid = 0;
  std::uint64_t bytes = 0;
  std::array<std::uint8_t, 64> handle{};  // Fabric, Ipc
};

enum class MemoryKind : std::uint8_t { Virtual, Ipc };

// A range of a slot, from its start. Both are multiples of 2 MiB.
struct SegmentPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const SegmentPart&, const SegmentPart&) = default;
};

class Segments {
 public:
  Segments() = default;
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;
  virtual ~Segments() = default;

  [[nodiscard]] virtual std::byte* base() const = 0;  // own memory
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual DeviceSegmentOffer offer() const = 0;
  // `whose` is for the error message.
  virtual std::byte* map(std::uint32_t slot,
                         const DeviceSegmentOffer& offer,
                         std::string_view whose) = 0;
  // All peers have mapped the memory: the offered descriptors may be closed.
  virtual void close_offer() = 0;
  // The distance from one slot to the next; 0 if it is not constant.
  [[nodiscard]] virtual std::uint64_t stride() const = 0;

  // ---- Parts that are added later, between size() and reserved(). Collective calls of the owner
  // keep the same parts on all PEs.

  // The addresses of a slot; size() if nothing can be added.
  [[nodiscard]] virtual std::uint64_t reserved() const { return size(); }

  // Allocates own memory there, whose contents are undefined, and offers it. Throws OutOfMemory if
  // the GPU does not have enough; nothing has then changed.
  virtual DeviceSegmentOffer add_part(const SegmentPart& part) = 0;
  // Maps memory of the program there instead, and offers it; the program's own mapping stays. It
  // must be one whole allocation of virtual memory management, of the part's size, on this GPU,
  // which peers can import. Throws InvalidArgument, with the reason, for any other; nothing has
  // then changed.
  virtual DeviceSegmentOffer adopt_part(const SegmentPart& part, std::byte* memory) = 0;
  // Maps the part of a peer. If it throws, drop_part removes what is mapped.
  virtual void map_part(std::uint32_t slot,
                        const SegmentPart& part,
                        const DeviceSegmentOffer& offer,
                        std::string_view whose) = 0;
  // Unmaps the part at all slots and frees own memory; the program's stays as long as the program
  // keeps it. No GPU may access it. No effect on an unknown part.
  virtual void drop_part(const SegmentPart& part) noexcept = 0;
};

struct SegmentPlan {
  std::uint64_t bytes = 0;
  std::uint64_t own_bytes = 0;  // of these, for Weft itself
  std::uint64_t reserved_bytes =
      0;  // addresses for each slot, if more than `bytes`; fewer where the system has less
  std::uint32_t slot_count = 1;
  std::uint32_t my_slot = 0;
  MemoryKind kind = MemoryKind::Virtual;
  bool may_use_fabric = true;  // handles of that kind, where the GPU has them
};

// Allocates zeroed memory. Throws OutOfMemory if the GPU does not have enough.
[[nodiscard]] std::unique_ptr<Segments> make_segments(const Device& device,
                                                      const SegmentPlan& plan);

}  // namespace weft::gpu
