// Time of one copy on one GPU, by a thread, a warp or a block: what the loop of include/weft/device/copy.cuh costs
// without a link behind it. One JSON line for each scope, source and size.
//
//   nvcc -std=c++17 -arch=sm_90 -O3 -I include bench/device_copy.cu -o device_copy && ./device_copy
#include <weft/device/copy.cuh>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace wd = weft::device;

namespace {

constexpr int kCopies = 200;

// Every copy waits for the one before, as does a program that needs the data.
template <typename Scope, wd::Source kSource>
__global__ void copies(std::byte* dest,
                       const std::byte* source,
                       std::size_t bytes,
                       long long* clocks) {
  wd::copy<Scope, kSource>(dest, source, bytes);
  __syncthreads();
  const long long begin = clock64();
  for (int i = 0; i < kCopies; ++i) {
    wd::copy<Scope, kSource>(dest, source, bytes);
    __threadfence();
    Scope::sync();
  }
  if (threadIdx.x == 0) {
    *clocks = clock64() - begin;
  }
}

struct Memory {
  std::byte* dest;
  std::byte* source;
  long long* clocks;
  double ns_per_clock;

  // Of the last kernel.
  [[nodiscard]] double ns_per_copy() const {
    long long count = 0;
    cudaMemcpy(&count, clocks, sizeof count, cudaMemcpyDeviceToHost);
    return static_cast<double>(count) * ns_per_clock / kCopies;
  }
};

template <typename Scope, wd::Source kSource>
void measure(const Memory& memory, const char* scope, unsigned threads, std::size_t bytes_max) {
  const char* source = kSource == wd::Source::Mine ? "mine" : "peer's";
  for (std::size_t bytes = 256; bytes <= bytes_max; bytes += bytes / 2) {
    const std::size_t whole = bytes / 16 * 16;
    std::vector<double> samples;
    for (int run = 0; run < 9; ++run) {
      copies<Scope, kSource><<<1, threads>>>(memory.dest, memory.source, whole, memory.clocks);
      cudaError_t error = cudaGetLastError();
      error = error == cudaSuccess ? cudaDeviceSynchronize() : error;
      if (error != cudaSuccess) {
        std::fprintf(stderr, "device_copy: %s, %u threads: %s\n", scope, threads,
                     cudaGetErrorString(error));
        return;
      }
      samples.push_back(memory.ns_per_copy());
    }
    std::sort(samples.begin(), samples.end());
    std::printf("{\"scope\":\"%s\",\"threads\":%u,\"source\":\"%s\",\"bytes\":%zu,\"ns\":%.1f}\n",
                scope, threads, source, whole, samples[samples.size() / 2]);
  }
}

template <wd::Source kSource>
void measure_scopes(const Memory& memory) {
  measure<wd::Thread, kSource>(memory, "thread", 1, 4096);
  measure<wd::Warp, kSource>(memory, "warp", 32, 32768);
  measure<wd::Block, kSource>(memory, "block", 256, 131072);
  measure<wd::Block, kSource>(memory, "block", 1024, 262144);
}

}  // namespace

int main() {
  Memory memory{};
  int khz = 0;
  if (cudaMalloc(&memory.dest, 1 << 20) != cudaSuccess ||
      cudaMalloc(&memory.source, 1 << 20) != cudaSuccess ||
      cudaMalloc(&memory.clocks, sizeof(long long)) != cudaSuccess ||
      cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0) != cudaSuccess) {
    std::fprintf(stderr, "device_copy: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 1;
  }
  memory.ns_per_clock = 1e6 / khz;
  measure_scopes<wd::Source::Mine>(memory);
  measure_scopes<wd::Source::Peers>(memory);
  return 0;
}
