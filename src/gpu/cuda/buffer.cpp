#include "src/gpu/buffer.hpp"

#include <cstring>

#include "src/base/units.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {

PinnedBuffer::PinnedBuffer(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
        fmt::format("pinning {} of host memory", format_bytes(bytes)), Status::OutOfMemory);
  std::memset(memory, 0, bytes);
  memory_ = {static_cast<std::byte*>(memory), bytes};
}

PinnedBuffer::~PinnedBuffer() {
  if (!memory_.empty()) {
    cudaFreeHost(memory_.data());  // after a failed kernel this fails, and the process ends anyway
  }
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), fmt::format("allocating {} on the GPU", format_bytes(bytes)),
        Status::OutOfMemory);
  memory_ = {static_cast<std::byte*>(memory), bytes};
  clear(memory_.data(), bytes);
}

DeviceBuffer::~DeviceBuffer() {
  if (!memory_.empty()) {
    cudaFree(memory_.data());
  }
}

void DeviceBuffer::write(std::size_t offset, std::span<const std::byte> bytes) {
  WEFT_CHECK(offset + bytes.size() <= memory_.size(), "{} bytes at {} of {}", bytes.size(), offset,
             memory_.size());
  check(cudaMemcpy(memory_.data() + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
        "writing to the GPU's memory");
}

void clear(std::byte* device_memory, std::size_t bytes) {
  check(cudaMemset(device_memory, 0, bytes), "clearing the GPU's memory");
  check(cudaDeviceSynchronize(), "waiting for the GPU");
}

}  // namespace weft::gpu
