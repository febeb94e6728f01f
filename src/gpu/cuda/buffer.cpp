#include "src/gpu/buffer.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/units.hpp"
#include "src/gpu/cuda/driver.hpp"
#include "src/gpu/device.hpp"

namespace weft::gpu {
namespace {

// A stream of its own for each call: the work neither waits for kernels of the program, which may
// themselves wait for a peer, nor makes them wait.
class OwnStream {
 public:
  OwnStream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  }

  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  ~OwnStream() { cudaStreamDestroy(stream_); }

  [[nodiscard]] cudaStream_t get() const { return stream_; }

  void finish() const { check(cudaStreamSynchronize(stream_), "waiting for the GPU"); }

 private:
  BorrowedThread borrowed_;  // first: to wait for a stream is forbidden while a graph is captured
  cudaStream_t stream_ = nullptr;
};

}  // namespace

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

void DeviceBuffer::read(std::size_t offset, std::span<std::byte> bytes) const {
  WEFT_CHECK(offset + bytes.size() <= memory_.size(), "{} bytes at {} of {}", bytes.size(), offset,
             memory_.size());
  const OwnStream stream;
  check(cudaMemcpyAsync(bytes.data(), memory_.data() + offset, bytes.size(), cudaMemcpyDeviceToHost,
                        stream.get()),
        "reading the GPU's memory");
  stream.finish();
}

void DeviceBuffer::write(std::size_t offset, std::span<const std::byte> bytes) {
  WEFT_CHECK(offset + bytes.size() <= memory_.size(), "{} bytes at {} of {}", bytes.size(), offset,
             memory_.size());
  const OwnStream stream;
  check(cudaMemcpyAsync(memory_.data() + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice,
                        stream.get()),
        "writing to the GPU's memory");
  stream.finish();
}

void clear(std::byte* device_memory, std::size_t bytes) {
  const OwnStream stream;
  check(cudaMemsetAsync(device_memory, 0, bytes, stream.get()), "clearing the GPU's memory");
  stream.finish();
}

void fill(std::byte* device_memory, std::size_t bytes, std::uint32_t word) {
  const OwnStream stream;
  const std::vector<std::uint32_t> words(16384, word);
  std::size_t filled = std::min(bytes, words.size() * sizeof word);
  check(cudaMemcpyAsync(device_memory, words.data(), filled, cudaMemcpyHostToDevice, stream.get()),
        "filling the GPU's memory");
  for (std::size_t more = 0; filled < bytes; filled += more) {
    more = std::min(filled, bytes - filled);
    check(cudaMemcpyAsync(device_memory + filled, device_memory, more, cudaMemcpyDeviceToDevice,
                          stream.get()),
          "filling the GPU's memory");
  }
  stream.finish();
}

}  // namespace weft::gpu
