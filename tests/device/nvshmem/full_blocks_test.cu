// Kernels that say nothing of their threads, with 1,024 of them in a block: each starts, and does
// what it should.
#include "tests/device/nvshmem/tools.cuh"

namespace {

using suite::Checks;
using suite::Symmetric;
using suite::Wrong;

constexpr int kThreads = 1024;
constexpr int kCount = 4 * kThreads;

__global__ void ring_of_blocks(
    int* dest, int* source, uint64_t* signals, int rounds, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int pes = nvshmem_n_pes();
  const int next = (me + 1) % pes;
  const int last = (me + pes - 1) % pes;
  for (int round = 1; round <= rounds; ++round) {
    for (int i = threadIdx.x; i < kCount; i += kThreads) {
      source[i] = me * 1'000'000 + round * 10'000 + i;
    }
    nvshmemx_int_put_signal_block(dest, source, kCount, signals, 1, NVSHMEM_SIGNAL_ADD, next);
    nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, static_cast<uint64_t>(round));
    for (int i = threadIdx.x; i < kCount; i += kThreads) {
      WELL(wrong, dest[i] == last * 1'000'000 + round * 10'000 + i);
    }
    nvshmemx_barrier_all_block();
  }
}

DEVICE_TEST(put_signal_and_barrier, "put_signal, wait and barrier by blocks of 1,024 threads") {
  Checks checks;
  Symmetric<int> dest(kCount);
  Symmetric<int> source(kCount);
  Symmetric<uint64_t> signals(1);
  suite::finish("memory");
  suite::run_kernel("ring_of_blocks", &ring_of_blocks, kThreads, checks, dest.get(), source.get(),
                    signals.get(), static_cast<int>(suite::turns(500, 4)), checks.get());
}

// Every thread on its own.
__global__ void alone(int* dest, int* source, int* counter, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int pes = nvshmem_n_pes();
  const int next = (me + 1) % pes;
  const int last = (me + pes - 1) % pes;
  const int i = static_cast<int>(threadIdx.x);
  source[i] = me + i;
  nvshmem_int_put(dest + i, source + i, 1, next);
  nvshmem_int_p(dest + kThreads + i, me - i, next);
  nvshmem_int_atomic_add(counter, 1, next);
  nvshmem_quiet();
  nvshmem_int_wait_until(counter, NVSHMEM_CMP_EQ, kThreads);
  WELL(wrong, dest[i] == last + i);
  WELL(wrong, dest[kThreads + i] == last - i);
  nvshmemx_barrier_all_block();
  WELL(wrong, nvshmem_int_g(source + i, next) == next + i);
  nvshmem_int_get(dest + i, source + i, 1, next);
  WELL(wrong, dest[i] == next + i);
  nvshmemx_barrier_all_block();
}

DEVICE_TEST(single_threads, "each of 1,024 threads puts, waits and gets") {
  Checks checks;
  Symmetric<int> dest(2 * kThreads);
  Symmetric<int> source(kThreads);
  Symmetric<int> counter(1);
  suite::finish("memory");
  suite::run_kernel("alone", &alone, kThreads, checks, dest.get(), source.get(), counter.get(),
                    checks.get());
}

}  // namespace
