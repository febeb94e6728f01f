// What NVSHMEM's names cost beside Weft's calls of the same thing, in kernels, in turn, to the next
// PE; and beside Weft's calls after a sync of the block, with which NVSHMEM's calls of blocks begin
// (weft_after_sync_ns). One JSON line for each call, in ns, medians of 15 launches.
//
//   scripts/build gpu device_programs weft-run && P=build/gpu/nvshmem
//   nvcc -std=c++17 -arch=sm_90 -O3 -Iinclude/nvshmem -Iinclude bench/nvshmem_overhead.cu -o
//   overhead -Lbuild/gpu/lib -L$P/lib -lnvshmem_host -lweft LD_LIBRARY_PATH=build/gpu/lib:$P/lib
//   build/gpu/bin/weft-run -n 2 -- ./overhead
#include <weft/device.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

namespace wd = weft::device;

namespace {

constexpr int kCalls = 200;
constexpr int kLaunches = 15;
constexpr unsigned kThreads = 256;

struct Memory {
  char* dest;
  char* source;
  std::uint64_t* words;
  long long* clocks;
  int pe;
};

// clang-format off
struct P {
  static constexpr const char* kName = "p";
  static __device__ void theirs(const Memory& m, std::size_t) { nvshmem_int_p(reinterpret_cast<int*>(m.dest), 1, m.pe); }
  static __device__ void ours(const Memory& m, std::size_t) { wd::p(reinterpret_cast<int*>(m.dest), 1, m.pe); }
};
struct Put {
  static constexpr const char* kName = "putmem";
  static __device__ void theirs(const Memory& m, std::size_t n) { nvshmem_putmem(m.dest, m.source, n, m.pe); }
  static __device__ void ours(const Memory& m, std::size_t n) { wd::put(m.dest, m.source, n, m.pe); }
};
struct PutBlock {
  static constexpr const char* kName = "putmem_block";
  static __device__ void theirs(const Memory& m, std::size_t n) { nvshmemx_putmem_block(m.dest, m.source, n, m.pe); }
  static __device__ void ours(const Memory& m, std::size_t n) { wd::put<wd::Block>(m.dest, m.source, n, m.pe); }
};
struct GetBlock {
  static constexpr const char* kName = "getmem_block";
  static __device__ void theirs(const Memory& m, std::size_t n) { nvshmemx_getmem_block(m.dest, m.source, n, m.pe); }
  static __device__ void ours(const Memory& m, std::size_t n) { wd::get<wd::Block>(m.dest, m.source, n, m.pe); }
};
struct PutSignalBlock {
  static constexpr const char* kName = "putmem_signal_block";
  static __device__ void theirs(const Memory& m, std::size_t n) {
    nvshmemx_putmem_signal_block(m.dest, m.source, n, m.words, 1, NVSHMEM_SIGNAL_SET, m.pe);
  }
  static __device__ void ours(const Memory& m, std::size_t n) {
    wd::put_signal<wd::Block>(m.dest, m.source, n, {m.words, 1, wd::SignalOp::Set}, m.pe);
  }
};
struct Add {
  static constexpr const char* kName = "uint64_atomic_add";
  static __device__ void theirs(const Memory& m, std::size_t) { nvshmem_uint64_atomic_add(m.words + 8, 1, m.pe); }
  static __device__ void ours(const Memory& m, std::size_t) { wd::atomic_add(m.words + 8, std::uint64_t{1}, m.pe); }
};
struct FetchAdd {
  static constexpr const char* kName = "uint64_atomic_fetch_add";
  static __device__ void theirs(const Memory& m, std::size_t) { nvshmem_uint64_atomic_fetch_add(m.words + 8, 1, m.pe); }
  static __device__ void ours(const Memory& m, std::size_t) { wd::atomic_fetch_add(m.words + 8, std::uint64_t{1}, m.pe); }
};
struct Wait {
  static constexpr const char* kName = "signal_wait_until";
  static __device__ void theirs(const Memory& m, std::size_t) { nvshmem_signal_wait_until(m.words + 16, NVSHMEM_CMP_EQ, 0); }
  static __device__ void ours(const Memory& m, std::size_t) { wd::signal_wait_until(m.words + 16, wd::Comparison::Eq, 0); }
};
struct Quiet {
  static constexpr const char* kName = "quiet";
  static __device__ void theirs(const Memory&, std::size_t) { nvshmem_quiet(); }
  static __device__ void ours(const Memory&, std::size_t) { wd::quiet(); }
};
struct Fence {
  static constexpr const char* kName = "fence";
  static __device__ void theirs(const Memory&, std::size_t) { nvshmem_fence(); }
  static __device__ void ours(const Memory&, std::size_t) { wd::fence(); }
};
// clang-format on

enum class Whose { Theirs, Ours, OursAfterSync };

template <typename Call, Whose kWhose>
__global__ void calls(Memory memory, std::size_t bytes) {
  long long begin = 0;
  for (int i = -8; i < kCalls; ++i) {
    if (i == 0) {
      __syncthreads();
      begin = clock64();
    }
    if constexpr (kWhose == Whose::Theirs) {
      Call::theirs(memory, bytes);
    } else {
      if constexpr (kWhose == Whose::OursAfterSync) {
        __syncthreads();
      }
      Call::ours(memory, bytes);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    *memory.clocks = clock64() - begin;
  }
  wd::quiet();
}

template <typename Call, Whose kWhose>
double ns_of(const Memory& memory, unsigned threads, std::size_t bytes, double ns_per_clock) {
  calls<Call, kWhose><<<1, threads>>>(memory, bytes);
  long long clocks = 0;
  cudaError_t error = cudaGetLastError();
  // Not cudaMemcpy alone: while it waits for the kernel it keeps out the proxy's calls, for which
  // the kernel waits.
  error = error == cudaSuccess ? cudaDeviceSynchronize() : error;
  error = error == cudaSuccess
              ? cudaMemcpy(&clocks, memory.clocks, sizeof clocks, cudaMemcpyDeviceToHost)
              : error;
  if (error != cudaSuccess) {
    std::fprintf(stderr, "nvshmem_overhead: %s: %s\n", Call::kName, cudaGetErrorString(error));
    nvshmem_global_exit(1);
  }
  return static_cast<double>(clocks) * ns_per_clock / kCalls;
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

template <typename Call>
void compare(const Memory& memory,
             unsigned threads,
             std::vector<std::size_t> sizes,
             double ns_per_clock) {
  for (const std::size_t bytes : sizes) {
    std::vector<double> theirs;
    std::vector<double> ours;
    std::vector<double> after_sync;
    for (int launch = 0; launch < kLaunches; ++launch) {
      theirs.push_back(ns_of<Call, Whose::Theirs>(memory, threads, bytes, ns_per_clock));
      ours.push_back(ns_of<Call, Whose::Ours>(memory, threads, bytes, ns_per_clock));
      after_sync.push_back(ns_of<Call, Whose::OursAfterSync>(memory, threads, bytes, ns_per_clock));
    }
    std::printf(
        "{\"call\":\"%s\",\"threads\":%u,\"bytes\":%zu,\"pes\":%d,\"nvshmem_ns\":%.1f,"
        "\"weft_ns\":%.1f,\"weft_after_sync_ns\":%.1f}\n",
        Call::kName, threads, bytes, nvshmem_n_pes(), median(theirs), median(ours),
        median(after_sync));
  }
}

void compare_all(const Memory& memory) {
  int khz = 0;
  cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
  const double ns = 1e6 / khz;
  compare<P>(memory, 1, {4}, ns);
  compare<Put>(memory, 1, {8, 64}, ns);
  compare<PutBlock>(memory, kThreads, {8, 1024, 65536}, ns);
  compare<GetBlock>(memory, kThreads, {8, 1024, 65536}, ns);
  compare<PutSignalBlock>(memory, kThreads, {8, 1024, 65536}, ns);
  compare<Add>(memory, 1, {8}, ns);
  compare<FetchAdd>(memory, 1, {8}, ns);
  compare<Wait>(memory, 1, {8}, ns);
  compare<Quiet>(memory, 1, {0}, ns);
  compare<Fence>(memory, 1, {0}, ns);
}

}  // namespace

int main() {
  nvshmem_init();
  cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE));
  Memory memory{};
  memory.dest = static_cast<char*>(nvshmem_malloc(1 << 20));
  memory.source = static_cast<char*>(nvshmem_malloc(1 << 20));
  memory.words = static_cast<std::uint64_t*>(nvshmem_calloc(64, sizeof(std::uint64_t)));
  cudaMalloc(&memory.clocks, sizeof(long long));
  memory.pe = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  nvshmem_barrier_all();
  if (nvshmem_my_pe() == 0) {  // one at a time: the others' GPUs are idle
    compare_all(memory);
  }
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
