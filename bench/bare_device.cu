// What a GPU and its link allow, as bare loops without Weft: fences, round trips, meetings and
// stores of blocks. The rows of docs/PERFORMANCE.md stand beside them. One process, two GPUs with
// peer access; JSON lines, us, the median of `kSamples` launches.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 bench/bare_device.cu -o bare_device && ./bare_device
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kSamples = 9;
constexpr std::uint64_t kRounds = 2000;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "bare_device: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
  }
}

__device__ void store(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ std::uint64_t load(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

__device__ void await(const std::uint64_t* word, std::uint64_t value) {
  while (load(word) < value) {
  }
}

enum class Fence { None, Release, AcquireRelease, Full, ReleaseOnGpu, ReadBack };

template <Fence kFence>
__device__ void fence(std::uint64_t* peer_word) {
  if constexpr (kFence == Fence::Release) {
    asm volatile("fence.release.sys;" ::: "memory");
  } else if constexpr (kFence == Fence::AcquireRelease) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  } else if constexpr (kFence == Fence::Full) {
    asm volatile("fence.sc.sys;" ::: "memory");
  } else if constexpr (kFence == Fence::ReleaseOnGpu) {
    asm volatile("fence.release.gpu;" ::: "memory");
  } else if constexpr (kFence == Fence::ReadBack) {
    // orders nothing by the letter; only what a round trip to the peer takes
    std::uint64_t old;
    asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], 0;"
                 : "=l"(old)
                 : "l"(peer_word)
                 : "memory");
  }
}

// What is stored before the fence.
enum class Before { Nothing, OwnMemory, Peer, PeerLongAgo };

template <Fence kFence, Before kBefore>
__global__ void fences(std::uint64_t* own, std::uint64_t* peer) {
  for (std::uint64_t r = 1; r <= kRounds; ++r) {
    if constexpr (kBefore == Before::OwnMemory) {
      store(own, r);
    } else if constexpr (kBefore != Before::Nothing) {
      store(peer, r);
    }
    if constexpr (kBefore == Before::PeerLongAgo) {
      __nanosleep(3000);
    }
    fence<kFence>(peer + 8);
  }
}

__global__ void sleeps(std::uint64_t* /*own*/, std::uint64_t* peer) {
  for (std::uint64_t r = 1; r <= kRounds; ++r) {
    store(peer, r);
    __nanosleep(3000);
  }
}

// A round trip: `words` of 8 bytes of data, a fence, a flag.
template <Fence kFence>
__global__ void round_trips(std::uint64_t* own, std::uint64_t* peer, int side, int words) {
  for (std::uint64_t r = 1; r <= kRounds; ++r) {
    if (side == 1) {
      await(own, r);
    }
    for (int w = 0; w < words; ++w) {
      store(peer + 16 + w, r);
    }
    fence<kFence>(peer + 8);
    store(peer, r);
    if (side == 0) {
      await(own, r);
    }
  }
}

// A barrier of two: a fence, a flag each, no number to look up.
template <Fence kFence>
__global__ void meetings(std::uint64_t* own, std::uint64_t* peer) {
  for (std::uint64_t r = 1; r <= kRounds; ++r) {
    fence<kFence>(peer + 8);
    store(peer, r);
    await(own, r);
  }
}

// Every block stores its part of `bytes` again and again, `kAtOnce` units of 16 bytes of each
// thread in flight.
template <int kAtOnce>
__global__ void __launch_bounds__(1024, 1)
    stores(uint4* to, const uint4* from, std::size_t bytes, int times) {
  const std::size_t units = bytes / sizeof(uint4) / gridDim.x;
  const uint4* source = from + blockIdx.x * units;
  uint4* dest = to + blockIdx.x * units;
  for (int t = 0; t < times; ++t) {
    for (std::size_t i = threadIdx.x; i < units; i += blockDim.x * kAtOnce) {
      uint4 values[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u * blockDim.x < units) {
          values[u] = source[i + u * blockDim.x];
        }
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u * blockDim.x < units) {
          dest[i + u * blockDim.x] = values[u];
        }
      }
    }
    __syncthreads();
  }
}

struct Gpu {
  std::uint64_t* memory = nullptr;
  std::uint64_t* peer = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

constexpr std::size_t kBytes = std::size_t{64} << 20U;
char gpu_name[256];

// us of one launch by the slower GPU; launch(gpu, side) for the first `gpus` of them.
template <typename Launch>
double median_us(std::vector<Gpu>& all, int gpus, const Launch& launch) {
  std::vector<double> samples;
  for (int sample = 0; sample <= kSamples; ++sample) {
    for (int g = 0; g < 2; ++g) {
      check(cudaSetDevice(g), "cudaSetDevice");
      check(cudaMemset(all[g].memory, 0, 4096), "cudaMemset");
      check(cudaDeviceSynchronize(), "cudaMemset");
    }
    for (int g = 0; g < gpus; ++g) {
      check(cudaSetDevice(g), "cudaSetDevice");
      check(cudaEventRecord(all[g].begin, all[g].stream), "cudaEventRecord");
      launch(all[g], g);
      check(cudaGetLastError(), "a launch");
      check(cudaEventRecord(all[g].end, all[g].stream), "cudaEventRecord");
    }
    double longest = 0;
    for (int g = 0; g < gpus; ++g) {
      float ms = 0;
      check(cudaSetDevice(g), "cudaSetDevice");
      check(cudaEventSynchronize(all[g].end), "a launch");
      check(cudaEventElapsedTime(&ms, all[g].begin, all[g].end), "cudaEventElapsedTime");
      longest = std::max(longest, static_cast<double>(ms) * 1e3);
    }
    if (sample != 0) {
      samples.push_back(longest);
    }
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

void report(const char* row, const char* variant, std::size_t bytes, double us) {
  std::printf(
      "{\"bench\": \"bare_device\", \"row\": \"%s\", \"variant\": \"%s\", \"bytes\": %zu, \"us\": "
      "%.3f, \"gpu\": \"%s\"}\n",
      row, variant, bytes, us, gpu_name);
  std::fflush(stdout);
}

template <Fence kFence>
void measure_fence(std::vector<Gpu>& gpus, const char* name) {
  const auto of = [&](auto kernel) {
    return median_us(gpus, 1,
                     [&](const Gpu& gpu, int) {
                       kernel<<<1, 1, 0, gpu.stream>>>(gpu.memory, gpu.peer);
                     }) /
           kRounds;
  };
  const double asleep = of(&sleeps);
  report("fence alone", name, 0, of(&fences<kFence, Before::Nothing>));
  report("store to own memory, fence", name, 8, of(&fences<kFence, Before::OwnMemory>));
  report("store to peer, fence", name, 8, of(&fences<kFence, Before::Peer>));
  report("store to peer, 3 us, fence: without the 3 us", name, 8,
         of(&fences<kFence, Before::PeerLongAgo>) - asleep);
  const auto both = [&](int words) {
    return median_us(gpus, 2,
                     [&](const Gpu& gpu, int side) {
                       round_trips<kFence>
                           <<<1, 1, 0, gpu.stream>>>(gpu.memory, gpu.peer, side, words);
                     }) /
           kRounds;
  };
  report("data, fence, flag: round trip", name, 16, both(2));
  report("barrier of 2", name, 0, median_us(gpus, 2, [&](const Gpu& gpu, int) {
                                    meetings<kFence><<<1, 1, 0, gpu.stream>>>(gpu.memory, gpu.peer);
                                  }) / kRounds);
}

template <int kAtOnce>
void measure_stores(std::vector<Gpu>& gpus, const char* name, int blocks, int threads) {
  constexpr int kTimes = 200;
  for (std::size_t bytes = std::size_t{128} << 10U; bytes <= std::size_t{4} << 20U; bytes *= 2) {
    report(name, blocks == 32 ? "32 blocks of 256" : "64 blocks of 1024", bytes,
           median_us(gpus, 1, [&](const Gpu& gpu, int) {
             stores<kAtOnce><<<blocks, threads, 0, gpu.stream>>>(
                 reinterpret_cast<uint4*>(gpu.peer), reinterpret_cast<uint4*>(gpu.memory), bytes,
                 kTimes);
           }) / kTimes);
  }
}

}  // namespace

int main() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (count < 2) {
    std::fprintf(stderr, "bare_device: it takes two GPUs with peer access, and here are %d\n",
                 count);
    return 77;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::snprintf(gpu_name, sizeof(gpu_name), "%s", properties.name);
  std::vector<Gpu> gpus(2);
  for (int g = 0; g < 2; ++g) {
    check(cudaSetDevice(g), "cudaSetDevice");
    check(cudaDeviceEnablePeerAccess(1 - g, 0), "cudaDeviceEnablePeerAccess");
    check(cudaMalloc(&gpus[g].memory, kBytes), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&gpus[g].stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&gpus[g].begin), "cudaEventCreate");
    check(cudaEventCreate(&gpus[g].end), "cudaEventCreate");
  }
  gpus[0].peer = gpus[1].memory;
  gpus[1].peer = gpus[0].memory;
  measure_fence<Fence::None>(gpus, "no fence");
  measure_fence<Fence::Release>(gpus, "fence.release.sys");
  measure_fence<Fence::AcquireRelease>(gpus, "fence.acq_rel.sys");
  measure_fence<Fence::Full>(gpus, "fence.sc.sys");
  measure_fence<Fence::ReleaseOnGpu>(gpus, "fence.release.gpu");
  measure_fence<Fence::ReadBack>(gpus, "an atomic that returns");
  measure_stores<2>(gpus, "stores, 2 of a thread at once", 32, 256);
  measure_stores<4>(gpus, "stores, 4 of a thread at once", 32, 256);
  measure_stores<8>(gpus, "stores, 8 of a thread at once", 32, 256);
  measure_stores<2>(gpus, "stores, 2 of a thread at once", 64, 1024);
  return 0;
}
