// Real memory that is a GPU's; see shadow.h. On a stream of its own, which no other work waits for.
#include <cuda_runtime.h>

#include <string>

#include "tests/nvshmem/shadow/shadow.h"

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 32;

void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    shadow_die((std::string(what) + ": " + cudaGetErrorString(error)).c_str());
  }
}

cudaStream_t stream() {
  static cudaStream_t only = nullptr;
  if (only == nullptr) {
    must(cudaStreamCreateWithFlags(&only, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  return only;
}

// Grows to what it has been asked for.
class Scratch {
 public:
  unsigned char* filled(const void* host, std::size_t bytes) {
    if (bytes > bytes_) {
      must(cudaFree(data_), "cudaFree");
      must(cudaMalloc(&data_, bytes), "cudaMalloc");
      bytes_ = bytes;
    }
    must(cudaMemcpyAsync(data_, host, bytes, cudaMemcpyHostToDevice, stream()),
         "a copy to the GPU");
    return data_;
  }

 private:
  unsigned char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

__global__ void merge(unsigned char* real,
                      const unsigned char* fresh,
                      const unsigned char* last,
                      std::size_t bytes) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step) {
    if (fresh[i] != last[i]) {
      real[i] = fresh[i];
    }
  }
}

}  // namespace

void shadow_read(void* host, const void* real, size_t bytes) {
  must(cudaMemcpyAsync(host, real, bytes, cudaMemcpyDeviceToHost, stream()), "a copy from the GPU");
  shadow_stream_wait();
}

void shadow_write(void* real, const void* host, size_t bytes) {
  must(cudaMemcpyAsync(real, host, bytes, cudaMemcpyHostToDevice, stream()), "a copy to the GPU");
  shadow_stream_wait();
}

void shadow_merge(void* real, const void* fresh, const void* last, size_t bytes) {
  static Scratch of_fresh;
  static Scratch of_last;
  const unsigned char* from = of_fresh.filled(fresh, bytes);
  const unsigned char* before = of_last.filled(last, bytes);
  merge<<<kBlocks, kThreads, 0, stream()>>>(static_cast<unsigned char*>(real), from, before, bytes);
  must(cudaGetLastError(), "writing what the CPU has stored");
  shadow_stream_wait();
}

void* shadow_buffer(size_t bytes) {
  void* buffer = nullptr;
  must(cudaMalloc(&buffer, bytes), "cudaMalloc");
  return buffer;
}

void* shadow_stream(void) {
  return stream();
}

void shadow_stream_wait(void) {
  must(cudaStreamSynchronize(stream()), "the GPU");
}
