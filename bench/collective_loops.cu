// What collectives of large data could reach: loops that move their bytes between all GPUs of this machine, without Weft, in one
// process, without waits between GPUs.
//   nvcc -std=c++20 -O3 -arch=sm_90 bench/collective_loops.cu -o collective_loops && ./collective_loops > rows.jsonl
// Prints a JSON line for each loop, size and number of blocks: us for a call, and GB/s of the GPU that sends most.
//
//   shares     broadcast: each GPU but the first reads its share from that one and stores it to all others
//   chain      broadcast: each GPU but the last copies all to the next
//   loads      all-reduce: each GPU reads its share of all, and stores the sums to all
//   stores     all-reduce: half of the blocks store to the owners of shares, half sum what lies here and store to all
//   ring       all-reduce: each GPU stores 2 (n - 1) / n of the bytes to the next, half of them sums
#include <cuda_runtime.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kGpusMax = 8;
constexpr unsigned kThreads = 512;
constexpr size_t kBytesMax = size_t{256} << 20U;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "collective_loops: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
  }
}

// Three buffers of every GPU.
struct Memory {
  float4* source[kGpusMax];
  float4* dest[kGpusMax];
  float4* scratch[kGpusMax];
  int gpus;
};

__device__ float4 load(const float4* from) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}

__device__ void store(float4* to, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

__device__ float4 sum(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// The threads that share a loop, and this one.
struct Crew {
  size_t rank, size;
};

__device__ Crew crew_of(unsigned block, unsigned blocks) {
  return {size_t{block} * blockDim.x + threadIdx.x, size_t{blocks} * blockDim.x};
}

// The share of GPU `me`: parts of all GPUs where they are, or `apart`, those of the others as they were stored here.
template <int kPlaces>
__device__ void sum_and_spread(const Memory& m, int me, size_t each, bool apart, Crew crew) {
  const size_t first = me * each;
  for (size_t i = crew.rank; i < each; i += kPlaces * crew.size) {
    float4 result[kPlaces];
    for (int j = 0; j < m.gpus; ++j) {
      const float4* from = apart && j != me ? m.scratch[me] + j * each : m.source[j] + first;
#pragma unroll
      for (int u = 0; u < kPlaces; ++u) {
        if (const size_t at = i + u * crew.size; at < each) {
          const float4 value = load(from + at);
          result[u] = j == 0 ? value : sum(result[u], value);
        }
      }
    }
    for (int k = 1; k <= m.gpus; ++k) {
#pragma unroll
      for (int u = 0; u < kPlaces; ++u) {
        if (const size_t at = i + u * crew.size; at < each) {
          store(m.dest[(me + k) % m.gpus] + first + at, result[u]);
        }
      }
    }
  }
}

template <int kPlaces>
__global__ void loads(Memory m, int me, size_t units) {
  const size_t each = units / m.gpus;
  sum_and_spread<kPlaces>(m, me, each, false, crew_of(blockIdx.x, gridDim.x));
}

template <int kPlaces>
__global__ void stores(Memory m, int me, size_t units) {
  const size_t each = units / m.gpus;
  const unsigned half = gridDim.x / 2;
  const Crew crew = crew_of(blockIdx.x % half, half);
  if (blockIdx.x >= half) {
    sum_and_spread<kPlaces>(m, me, each, true, crew);
    return;
  }
  for (size_t i = crew.rank; i < each; i += crew.size) {
    for (int k = 1; k < m.gpus; ++k) {
      const int owner = (me + k) % m.gpus;
      store(m.scratch[owner] + me * each + i, load(m.source[me] + owner * each + i));
    }
  }
}

template <int kPlaces>
__device__ void copy(float4* to, const float4* from, const float4* added, size_t units, Crew crew) {
  for (size_t i = crew.rank; i < units; i += kPlaces * crew.size) {
    float4 value[kPlaces];
#pragma unroll
    for (int u = 0; u < kPlaces; ++u) {
      if (const size_t at = i + u * crew.size; at < units) {
        value[u] = added == nullptr ? load(from + at) : sum(load(from + at), load(added + at));
      }
    }
#pragma unroll
    for (int u = 0; u < kPlaces; ++u) {
      if (const size_t at = i + u * crew.size; at < units) {
        store(to + at, value[u]);
      }
    }
  }
}

template <int kPlaces>
__global__ void ring(Memory m, int me, size_t units) {
  const int next = (me + 1) % m.gpus;
  const size_t most = units / m.gpus * (m.gpus - 1);
  const Crew crew = crew_of(blockIdx.x, gridDim.x);
  copy<kPlaces>(m.scratch[next], m.source[me], m.scratch[me], most, crew);
  copy<kPlaces>(m.dest[next], m.source[me], nullptr, most, crew);
}

template <int kPlaces>
__global__ void chain(Memory m, int me, size_t units) {
  if (me + 1 < m.gpus) {
    copy<kPlaces>(m.dest[me + 1], me == 0 ? m.source[0] : m.dest[me], nullptr, units,
                  crew_of(blockIdx.x, gridDim.x));
  }
}

template <int kPlaces>
__global__ void shares(Memory m, int me, size_t units) {
  const size_t each = units / (m.gpus - 1);
  const Crew crew = crew_of(blockIdx.x, gridDim.x);
  const size_t first = me > 0 ? (me - 1) * each : 0;
  for (size_t i = crew.rank; me > 0 && i < each; i += kPlaces * crew.size) {
    float4 value[kPlaces];
#pragma unroll
    for (int u = 0; u < kPlaces; ++u) {
      if (const size_t at = i + u * crew.size; at < each) {
        value[u] = load(m.source[0] + first + at);
      }
    }
    for (int k = 0; k + 1 < m.gpus; ++k) {
#pragma unroll
      for (int u = 0; u < kPlaces; ++u) {
        if (const size_t at = i + u * crew.size; at < each) {
          store(m.dest[(me - 1 + k) % (m.gpus - 1) + 1] + first + at, value[u]);
        }
      }
    }
  }
}

struct Loop {
  const char* name;
  int places;
  void (*kernel)(Memory, int, size_t);
  bool reduces;  // its GPUs send 2 (n - 1) / n bytes for each byte
};

constexpr Loop kLoops[] = {
    {"shares", 1, shares<1>, false}, {"shares", 2, shares<2>, false},
    {"shares", 4, shares<4>, false}, {"chain", 4, chain<4>, false},
    {"loads", 1, loads<1>, true},    {"loads", 2, loads<2>, true},
    {"stores", 1, stores<1>, true},  {"stores", 2, stores<2>, true},
    {"ring", 4, ring<4>, true},
};

// All GPUs at once, each from a thread of its own; the longest of their times, in us for a call.
double measure(const Memory& m, const Loop& loop, size_t bytes, unsigned blocks, int calls) {
  std::vector<double> us(m.gpus);
  std::barrier together(m.gpus);
  std::vector<std::thread> threads;
  for (int gpu = 0; gpu < m.gpus; ++gpu) {
    threads.emplace_back([&, gpu] {
      check(cudaSetDevice(gpu), "cudaSetDevice");
      cudaEvent_t begin = nullptr;
      cudaEvent_t end = nullptr;
      check(cudaEventCreate(&begin), "cudaEventCreate");
      check(cudaEventCreate(&end), "cudaEventCreate");
      for (const int count : {3, calls}) {  // the first to warm up
        together.arrive_and_wait();
        check(cudaEventRecord(begin), "cudaEventRecord");
        for (int i = 0; i < count; ++i) {
          loop.kernel<<<blocks, kThreads>>>(m, gpu, bytes / sizeof(float4));
        }
        check(cudaEventRecord(end), "cudaEventRecord");
        check(cudaEventSynchronize(end), loop.name);
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        us[gpu] = ms * 1e3 / count;
      }
      cudaEventDestroy(begin);
      cudaEventDestroy(end);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return *std::max_element(us.begin(), us.end());
}

Memory allocate() {
  Memory m{};
  check(cudaGetDeviceCount(&m.gpus), "cudaGetDeviceCount");
  m.gpus = std::min(m.gpus, kGpusMax);
  if (m.gpus < 2) {
    std::fprintf(stderr, "collective_loops: it needs two GPUs or more\n");
    std::exit(1);
  }
  for (int gpu = 0; gpu < m.gpus; ++gpu) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    for (int peer = 0; peer < m.gpus; ++peer) {
      if (peer != gpu) {
        check(cudaDeviceEnablePeerAccess(peer, 0), "cudaDeviceEnablePeerAccess");
      }
    }
    for (float4** buffer : {&m.source[gpu], &m.dest[gpu], &m.scratch[gpu]}) {
      check(cudaMalloc(buffer, kBytesMax), "cudaMalloc");
      check(cudaMemset(*buffer, 0, kBytesMax), "cudaMemset");
    }
    check(cudaDeviceSynchronize(), "cudaMemset");
  }
  return m;
}

}  // namespace

int main() {
  const Memory m = allocate();
  for (const Loop& loop : kLoops) {
    for (size_t bytes = size_t{2} << 20U; bytes <= kBytesMax; bytes *= 2) {
      for (const unsigned blocks : {32U, 64U, 132U}) {
        const double us = measure(m, loop, bytes, blocks, bytes > kBytesMax / 8 ? 8 : 40);
        const double sent = loop.reduces ? 2.0 * (m.gpus - 1) / m.gpus : 1;
        std::printf(
            "{\"loop\": \"%s\", \"places\": %d, \"gpus\": %d, \"bytes\": %zu, \"blocks\": %u, "
            "\"us\": %.2f, \"gb_per_s\": %.1f}\n",
            loop.name, loop.places, m.gpus, bytes, blocks, us,
            sent * static_cast<double>(bytes) / us / 1e3);
      }
    }
  }
}
