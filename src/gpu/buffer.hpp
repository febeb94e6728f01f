// Memory that the CPU and this PE's GPU share, and small buffers in the GPU's own memory: RAII.
// Both start zeroed and keep their address.
//
// Threads: as the memory is used. Errors: Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weft::gpu {

// Zeroed host memory that kernels access under the same address (cudaHostAlloc), as long as it
// lives.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t bytes);

  PinnedBuffer(PinnedBuffer&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}

  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

  ~PinnedBuffer();

  [[nodiscard]] std::byte* data() const { return memory_.data(); }

  [[nodiscard]] std::size_t size() const { return memory_.size(); }

 private:
  std::span<std::byte> memory_;
};

// Zeroed memory of the current GPU.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);

  DeviceBuffer(DeviceBuffer&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}

  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

  ~DeviceBuffer();

  [[nodiscard]] std::byte* data() const { return memory_.data(); }

  // Returns when the bytes are written; kernels that start later see them.
  void write(std::size_t offset, std::span<const std::byte> bytes);
  // What kernels have written that have ended.
  void read(std::size_t offset, std::span<std::byte> bytes) const;

 private:
  std::span<std::byte> memory_;
};

// Zeroes device memory and waits for completion.
void clear(std::byte* device_memory, std::size_t bytes);
// The same with a word; `bytes` is a multiple of 4.
void fill(std::byte* device_memory, std::size_t bytes, std::uint32_t word);

}  // namespace weft::gpu
