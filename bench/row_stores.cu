// How fast rows of a few KiB go from one GPU's memory to another's over NVLink, by the way they are stored: 16 bytes a
// thread, or bulk copies (cp.async.bulk) through shared memory. One process, two GPUs, both send at once; rows go to random
// places. JSON lines: GB/s of one direction, the median of `kSamples` launches.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 bench/row_stores.cu -o row_stores && ./row_stores
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "bulk_loops.cuh"

namespace {

constexpr int kSamples = 7;
constexpr int kGpus = 2;
constexpr std::size_t kBytes = std::size_t{256} << 20U;  // sent in one launch

// Visits the GPUs' numbers, each as the current one.
template <typename Visit>
void on_each_gpu(Visit&& visit) {
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    visit(gpu);
  }
}

constexpr std::uint32_t kLoads = 4;  // of a thread on their way at once

// A group of warps for each row, as the kernels of weft::moe do it.
template <int kWarps>
__global__ void __launch_bounds__(512, 1) store_rows(uint4* to,
                                                     const uint4* from,
                                                     const std::uint32_t* places,
                                                     std::uint32_t rows,
                                                     std::uint32_t units) {
  constexpr std::uint32_t kThreads = 32 * kWarps;
  const std::uint32_t groups = blockDim.x / kThreads;
  const std::uint32_t group = blockIdx.x * groups + threadIdx.x / kThreads;
  const std::uint32_t thread = threadIdx.x % kThreads;
  for (std::uint32_t row = group; row < rows; row += gridDim.x * groups) {
    const uint4* source = from + std::size_t{row} * units;
    uint4* dest = to + std::size_t{places[row]} * units;
    for (std::uint32_t first = thread; first < units; first += kThreads * kLoads) {
      uint4 values[kLoads];
#pragma unroll
      for (std::uint32_t i = 0; i < kLoads; ++i) {
        if (const std::uint32_t unit = first + i * kThreads; unit < units) {
          values[i] = source[unit];
        }
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kLoads; ++i) {
        if (const std::uint32_t unit = first + i * kThreads; unit < units) {
          dest[unit] = values[i];
        }
      }
    }
  }
}

// One thread of each block moves whole rows: in by a bulk copy with a barrier, out by a bulk copy in a group, `kStages`
// rows in flight.
template <int kStages>
__global__ void __launch_bounds__(32, 1) bulk_rows(char* to,
                                                   const char* from,
                                                   const std::uint32_t* places,
                                                   std::uint32_t rows,
                                                   std::uint32_t bytes) {
  extern __shared__ __align__(128) char memory[];
  __shared__ std::uint64_t barriers[kStages];
  if (threadIdx.x != 0) {
    return;
  }
  for (int s = 0; s < kStages; ++s) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barriers[s])));
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const std::uint32_t mine = blockIdx.x < rows ? (rows - 1 - blockIdx.x) / gridDim.x + 1 : 0;
  const auto load = [&](std::uint32_t k) {
    const int s = static_cast<int>(k % kStages);
    const std::uint32_t row = blockIdx.x + k * gridDim.x;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(&barriers[s])),
                 "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(memory + std::size_t(s) * bytes)),
        "l"(from + std::size_t{row} * bytes), "r"(bytes), "r"(shared_address(&barriers[s]))
        : "memory");
  };
  constexpr std::uint32_t kAhead = kStages - 1;
  for (std::uint32_t k = 0; k < kAhead && k < mine; ++k) {
    load(k);
  }
  for (std::uint32_t k = 0; k < mine; ++k) {
    const int s = static_cast<int>(k % kStages);
    await_phase(&barriers[s], (k / kStages) & 1U);
    const std::uint32_t row = blockIdx.x + k * gridDim.x;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     to + std::size_t{places[row]} * bytes),
                 "r"(shared_address(memory + std::size_t(s) * bytes)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (k + kAhead < mine) {
      // the stage that the next load takes was read by the store before this one
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      load(k + kAhead);
    }
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

struct Gpu {
  char* source = nullptr;
  char* dest = nullptr;  // on the other GPU
  std::uint32_t* places = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

template <typename Launch>
double rate(Gpu (&gpus)[kGpus], std::size_t bytes, const Launch& launch) {
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples + 1; ++sample) {
    on_each_gpu([](int) { check(cudaDeviceSynchronize(), "a launch"); });
    on_each_gpu([&](int g) {
      check(cudaEventRecord(gpus[g].begin, gpus[g].stream), "cudaEventRecord");
      launch(gpus[g]);
      check(cudaGetLastError(), "a launch");
      check(cudaEventRecord(gpus[g].end, gpus[g].stream), "cudaEventRecord");
    });
    double longest = 0;
    on_each_gpu([&](int g) {
      float ms = 0;
      check(cudaEventSynchronize(gpus[g].end), "a launch");
      check(cudaEventElapsedTime(&ms, gpus[g].begin, gpus[g].end), "cudaEventElapsedTime");
      longest = std::max(longest, static_cast<double>(ms));
    });
    if (sample != 0) {
      samples.push_back(static_cast<double>(bytes) / longest * 1e-6);
    }
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

void report(const char* way, std::uint32_t row_bytes, int blocks, double gb_per_s) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf(
      "{\"bench\": \"row_stores\", \"way\": \"%s\", \"row_bytes\": %u, \"blocks\": %d, "
      "\"gb_per_s\": %.1f, \"gpu\": \"%s\"}\n",
      way, row_bytes, blocks, gb_per_s, properties.name);
  std::fflush(stdout);
}

void measure(Gpu (&gpus)[kGpus], std::uint32_t row_bytes, int blocks) {
  const auto rows = static_cast<std::uint32_t>(kBytes / row_bytes);
  const std::size_t bytes = std::size_t{rows} * row_bytes;
  std::vector<std::uint32_t> places(rows);
  std::iota(places.begin(), places.end(), 0U);
  std::shuffle(places.begin(), places.end(), std::mt19937(row_bytes));
  on_each_gpu([&](int g) {
    check(cudaMemcpy(gpus[g].places, places.data(), rows * sizeof(std::uint32_t),
                     cudaMemcpyHostToDevice),
          "cudaMemcpy");
  });
  const auto stores = [&](auto kernel) {
    return rate(gpus, bytes, [&](const Gpu& gpu) {
      kernel<<<blocks, 512, 0, gpu.stream>>>(reinterpret_cast<uint4*>(gpu.dest),
                                             reinterpret_cast<const uint4*>(gpu.source), gpu.places,
                                             rows, row_bytes / 16);
    });
  };
  report("stores, a warp for each row", row_bytes, blocks, stores(&store_rows<1>));
  report("stores, 4 warps for each row", row_bytes, blocks, stores(&store_rows<4>));
  const auto bulk = [&](auto kernel, int stages) {
    on_each_gpu([&](int) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 stages * static_cast<int>(row_bytes)),
            "shared memory");
    });
    return rate(gpus, bytes, [&](const Gpu& gpu) {
      kernel<<<blocks, 32, stages * row_bytes, gpu.stream>>>(gpu.dest, gpu.source, gpu.places, rows,
                                                             row_bytes);
    });
  };
  report("bulk copies, 4 stages", row_bytes, blocks, bulk(&bulk_rows<4>, 4));
  report("bulk copies, 8 stages", row_bytes, blocks, bulk(&bulk_rows<8>, 8));
}

}  // namespace

int main() {
  Gpu gpus[kGpus];
  on_each_gpu([&](int g) {
    check(cudaDeviceEnablePeerAccess(1 - g, 0), "cudaDeviceEnablePeerAccess");
    check(cudaMalloc(&gpus[g].source, kBytes), "cudaMalloc");
    check(cudaMemset(gpus[g].source, 0x5a + g, kBytes), "cudaMemset");
    check(cudaMalloc(&gpus[1 - g].dest, kBytes), "cudaMalloc");
    check(cudaMalloc(&gpus[g].places, kBytes / 1024 * sizeof(std::uint32_t)), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&gpus[g].stream, cudaStreamNonBlocking), "a stream");
    check(cudaEventCreate(&gpus[g].begin), "an event");
    check(cudaEventCreate(&gpus[g].end), "an event");
  });
  for (const std::uint32_t row_bytes : {4096U, 7488U, 14336U}) {
    for (const int blocks : {8, 12, 16, 24, 32, 64, 132}) {
      measure(gpus, row_bytes, blocks);
    }
  }
  return 0;
}
