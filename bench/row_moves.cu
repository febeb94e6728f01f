// How fast rows cross NVLink when several GPUs of a host move them at once: stored to the other GPUs, or read from them, by 16 bytes
// a thread or by bulk copies (cp.async.bulk) of each warp. Row r of a GPU belongs to its peer r % (gpus - 1). One process; JSON lines:
// GB/s of one direction of one GPU, the slowest of them, the median of `kSamples` launches.
//
//   nvcc -std=c++17 -O3 -arch=sm_90 bench/row_moves.cu -o row_moves && ./row_moves
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bulk_loops.cuh"

namespace {

constexpr int kGpusMax = 4;
constexpr int kSamples = 5;
constexpr std::size_t kBytes = std::size_t{158} << 20U;  // what a GPU moves in one launch
constexpr int kThreads = 512;
constexpr std::uint32_t kWarps = kThreads / 32;
constexpr std::uint32_t kSlots = 4;  // of a warp, in shared memory
constexpr std::uint32_t kSlotBytes = 3328;
constexpr std::size_t kSharedBytes = std::size_t{kWarps} * kSlots * kSlotBytes;

struct Rows {
  char* far[kGpusMax];  // of each peer
  int peers;
  char* own;
  std::uint32_t count;
  std::uint32_t bytes;  // of one

  __device__ char* far_row(std::uint32_t row) const {
    return far[row % peers] + std::size_t{row / peers} * bytes;
  }

  __device__ char* own_row(std::uint32_t row) const { return own + std::size_t{row} * bytes; }
};

// Of a warp; those with the same number in their blocks are neighbours.
__device__ std::uint32_t first_row() {
  return threadIdx.x / 32 * gridDim.x + blockIdx.x;
}

// A warp for each row, kAtOnce loads of a thread on their way.
template <bool kReads, int kAtOnce>
__global__ void __launch_bounds__(kThreads, 1) by_threads(Rows rows) {
  const std::uint32_t units = rows.bytes / 16;
  for (std::uint32_t row = first_row(); row < rows.count; row += gridDim.x * kWarps) {
    const char* source = kReads ? rows.far_row(row) : rows.own_row(row);
    char* dest = kReads ? rows.own_row(row) : rows.far_row(row);
    const auto* from = reinterpret_cast<const uint4*>(source);
    auto* to = reinterpret_cast<uint4*>(dest);
    for (std::uint32_t first = threadIdx.x % 32; first < units; first += 32 * kAtOnce) {
      uint4 values[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (const std::uint32_t unit = first + i * 32; unit < units) {
          asm volatile("ld.relaxed.sys.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                       : "=r"(values[i].x), "=r"(values[i].y), "=r"(values[i].z), "=r"(values[i].w)
                       : "l"(from + unit)
                       : "memory");
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (const std::uint32_t unit = first + i * 32; unit < units) {
          to[unit] = values[i];
        }
      }
    }
  }
}

// One thread of each warp: rows in pieces, kSlots - 1 of them on their way in, while one goes out.
template <bool kReads>
__global__ void __launch_bounds__(kThreads, 1) by_bulk(Rows rows) {
  extern __shared__ __align__(128) char shared[];
  __shared__ std::uint64_t filled[kWarps][kSlots];
  const std::uint32_t warp = threadIdx.x / 32;
  if (threadIdx.x % 32 != 0) {
    return;
  }
  char* slots = shared + std::size_t{warp} * kSlots * kSlotBytes;
  for (std::uint64_t& barrier : filled[warp]) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const std::uint32_t pieces = (rows.bytes + kSlotBytes - 1) / kSlotBytes;
  const std::uint32_t piece_bytes = (rows.bytes / pieces + 15) / 16 * 16;
  const std::uint32_t step = gridDim.x * kWarps;
  const std::uint32_t mine =
      first_row() < rows.count ? (rows.count - 1 - first_row()) / step + 1 : 0;
  const auto bytes_of = [&](std::uint32_t k) {
    return min(piece_bytes, rows.bytes - k % pieces * piece_bytes);
  };
  const auto place = [&](std::uint32_t k, bool is_far) {
    const std::uint32_t row = first_row() + k / pieces * step;
    return (is_far ? rows.far_row(row) : rows.own_row(row)) + k % pieces * piece_bytes;
  };
  const auto load = [&](std::uint32_t k) {
    const std::uint32_t barrier = shared_address(&filled[warp][k % kSlots]);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes_of(k))
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(slots + k % kSlots * kSlotBytes)),
        "l"(place(k, kReads)), "r"(bytes_of(k)), "r"(barrier)
        : "memory");
  };
  for (std::uint32_t k = 0; k < kSlots - 1 && k < mine * pieces; ++k) {
    load(k);
  }
  for (std::uint32_t k = 0; k < mine * pieces; ++k) {
    await_phase(&filled[warp][k % kSlots], k / kSlots & 1U);
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(place(k, !kReads)),
        "r"(shared_address(slots + k % kSlots * kSlotBytes)), "r"(bytes_of(k))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (k + kSlots - 1 < mine * pieces) {
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      load(k + kSlots - 1);
    }
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

struct Gpu {
  char* own = nullptr;
  char* of_others = nullptr;  // kBytes for each GPU
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

struct Case {
  int gpus;
  int at_once;  // of them move rows
  std::uint32_t row_bytes;
  int blocks;
};

// Visits the first `count` GPUs' numbers, each as the current one.
template <typename Visit>
void on_each_gpu(int count, Visit&& visit) {
  for (int gpu = 0; gpu < count; ++gpu) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    visit(gpu);
  }
}

template <typename Kernel>
void measure(Gpu (&gpus)[kGpusMax], const Case& of, const char* way, Kernel kernel) {
  const std::size_t shared_bytes = std::strncmp(way, "bulk", 4) == 0 ? kSharedBytes : 0;
  std::vector<double> rates;
  const auto count = static_cast<std::uint32_t>(kBytes / of.row_bytes);
  for (int sample = 0; sample < kSamples + 1; ++sample) {
    on_each_gpu(of.gpus, [](int) { check(cudaDeviceSynchronize(), "a launch"); });
    on_each_gpu(of.at_once, [&](int g) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes)),
            "shared memory");
      Rows rows{{}, of.gpus - 1, gpus[g].own, count, of.row_bytes};
      for (int i = 0; i < rows.peers; ++i) {
        rows.far[i] = gpus[(g + 1 + i) % of.gpus].of_others + std::size_t(g) * kBytes;
      }
      check(cudaEventRecord(gpus[g].begin, gpus[g].stream), "cudaEventRecord");
      kernel<<<of.blocks, kThreads, shared_bytes, gpus[g].stream>>>(rows);
      check(cudaGetLastError(), way);
      check(cudaEventRecord(gpus[g].end, gpus[g].stream), "cudaEventRecord");
    });
    double longest = 0;
    on_each_gpu(of.at_once, [&](int g) {
      float ms = 0;
      check(cudaEventSynchronize(gpus[g].end), way);
      check(cudaEventElapsedTime(&ms, gpus[g].begin, gpus[g].end), "cudaEventElapsedTime");
      longest = std::max(longest, static_cast<double>(ms));
    });
    if (sample != 0) {
      rates.push_back(static_cast<double>(count) * of.row_bytes / longest * 1e-6);
    }
  }
  std::sort(rates.begin(), rates.end());
  std::printf(
      "{\"way\": \"%s\", \"gpus\": %d, \"at_once\": %d, \"row_bytes\": %u, \"blocks\": %d, "
      "\"gb_per_s\": %.1f}\n",
      way, of.gpus, of.at_once, of.row_bytes, of.blocks, rates[rates.size() / 2]);
  std::fflush(stdout);
}

}  // namespace

int main() {
  int found = 0;
  check(cudaGetDeviceCount(&found), "cudaGetDeviceCount");
  found = std::min(found, kGpusMax);
  Gpu gpus[kGpusMax];
  on_each_gpu(found, [&](int g) {
    for (int peer = 0; peer < found; ++peer) {
      if (peer != g) {
        check(cudaDeviceEnablePeerAccess(peer, 0), "cudaDeviceEnablePeerAccess");
      }
    }
    check(cudaMalloc(&gpus[g].own, kBytes), "cudaMalloc");
    check(cudaMalloc(&gpus[g].of_others, kGpusMax * kBytes), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&gpus[g].stream, cudaStreamNonBlocking), "a stream");
    check(cudaEventCreate(&gpus[g].begin), "an event");
    check(cudaEventCreate(&gpus[g].end), "an event");
  });
  for (int count = 2; count <= found; count += 2) {
    for (const int at_once : {1, count}) {
      for (const std::uint32_t row_bytes : {7488U, 14336U}) {
        for (const int blocks : {12, 24, 132}) {
          const Case of{count, at_once, row_bytes, blocks};
          measure(gpus, of, "stores, 16 bytes", &by_threads<false, 4>);
          measure(gpus, of, "loads, 16 bytes, 4 at once", &by_threads<true, 4>);
          measure(gpus, of, "loads, 16 bytes, 14 at once", &by_threads<true, 14>);
          measure(gpus, of, "bulk stores", &by_bulk<false>);
          measure(gpus, of, "bulk loads", &by_bulk<true>);
        }
      }
    }
  }
  return 0;
}
