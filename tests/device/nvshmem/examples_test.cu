// The programs that NVSHMEM's documentation explains, told anew: reductions and broadcasts around a
// ring, partial sums on a stream, blocks that put their parts.
#include "tests/device/nvshmem/tools.cuh"

namespace {

using suite::Checks;
using suite::Symmetric;
using suite::Wrong;

// The sum travels: each round a PE passes on what it has, and adds its own number to what arrives.
__global__ void sum_by_rounds(int* slot, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int count = nvshmem_n_pes();
  int total = me;
  for (int round = 1; round < count; ++round) {
    nvshmem_int_p(slot, total, (me + 1) % count);
    nvshmem_barrier_all();
    total = *const_cast<volatile int*>(slot) + me;
    nvshmem_barrier_all();
  }
  WELL(wrong, total == count * (count - 1) / 2);
}

DEVICE_TEST(collective_launch, "a reduction in rounds, in a kernel that is launched collectively") {
  Checks checks;
  Symmetric<int> slot(1);
  suite::finish("memory");
  suite::run_kernel("sum_by_rounds", &sum_by_rounds, 1, checks, slot.get(), checks.get());
}

constexpr int kInputs = 512;
constexpr int kLimit = 42;
constexpr int kCorrection = 7;

__global__ void add_up(const int* inputs, int* partial) {
  if (threadIdx.x == 0) {
    *partial = 0;
  }
  __syncthreads();
  atomicAdd(partial, inputs[threadIdx.x]);
}

__global__ void correct(int* inputs, const int* full) {
  if (*full > kLimit) {
    inputs[threadIdx.x] -= kCorrection;
  }
}

DEVICE_TEST(on_stream, "a reduction between two kernels, all in a stream's order") {
  Symmetric<int> inputs(kInputs);
  Symmetric<int> partial(1);
  Symmetric<int> full(1);
  inputs.write(std::vector<int>(kInputs, suite::me() + 1));
  nvshmem_barrier_all();
  cudaStream_t stream = nullptr;
  suite::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  add_up<<<1, kInputs, 0, stream>>>(inputs.get(), partial.get());
  nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, full.get(), partial.get(), 1, stream);
  correct<<<1, kInputs, 0, stream>>>(inputs.get(), full.get());
  suite::require_cuda(cudaStreamSynchronize(stream), "the stream");
  const int count = suite::pe_count();
  if (full.read()[0] != kInputs * count * (count + 1) / 2 ||
      inputs.read()[7] != suite::me() + 1 - kCorrection) {
    suite::fail("%d, %d", full.read()[0], inputs.read()[7]);
  }
  cudaStreamDestroy(stream);
  nvshmem_barrier_all();
}

// Each block fills its part of the source and puts it; a grid's blocks do so independently.
__global__ void __launch_bounds__(128, 1) put_parts(float* dest, float* source) {
  const int me = nvshmem_my_pe();
  const std::size_t begin = std::size_t{blockIdx.x} * blockDim.x;
  source[begin + threadIdx.x] =
      static_cast<float>(me * 10000 + static_cast<int>(begin + threadIdx.x));
  nvshmemx_float_put_block(dest + begin, source + begin, blockDim.x, (me + 1) % nvshmem_n_pes());
}

DEVICE_TEST(put_block, "blocks put their parts, and a barrier on the stream follows") {
  constexpr int kBlocks = 32;
  constexpr int kThreads = 128;
  Symmetric<float> dest(kBlocks * kThreads);
  Symmetric<float> source(kBlocks * kThreads);
  suite::finish("memory");
  put_parts<<<kBlocks, kThreads>>>(dest.get(), source.get());
  nvshmemx_barrier_all_on_stream(nullptr);
  suite::finish("put_parts");
  const int last = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  const std::vector<float> got = dest.read();
  for (int i = 0; i < kBlocks * kThreads; ++i) {
    if (got[static_cast<std::size_t>(i)] != static_cast<float>(last * 10000 + i)) {
      suite::fail("element %d is %g", i, got[static_cast<std::size_t>(i)]);
      return;
    }
  }
}

// Data, a fence, and the word that announces it, from PE to PE. Everybody but the last passes it
// on.
__global__ void broadcast_by_ring(int* data, int count, uint64_t* arrived, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int pes = nvshmem_n_pes();
  if (me != 0) {
    nvshmem_signal_wait_until(arrived, NVSHMEM_CMP_NE, 0);
  }
  if (me != pes - 1) {
    nvshmem_int_put_nbi(data, data, count, me + 1);
    nvshmem_fence();
    nvshmemx_signal_op(arrived, 1, NVSHMEM_SIGNAL_SET, me + 1);
  }
  for (int i = 0; i < count; ++i) {
    WELL(wrong, const_cast<volatile int*>(data)[i] == i + 1);
  }
}

DEVICE_TEST(ring_broadcast, "a broadcast around a ring, ordered by fences") {
  constexpr int kCount = 1000;
  Checks checks;
  Symmetric<int> data(kCount);
  Symmetric<uint64_t> arrived(1);
  if (suite::me() == 0) {
    std::vector<int> values(kCount);
    for (int i = 0; i < kCount; ++i) {
      values[static_cast<std::size_t>(i)] = i + 1;
    }
    data.write(values);
  }
  suite::finish("memory");
  suite::run_kernel("broadcast_by_ring", &broadcast_by_ring, 1, checks, data.get(), kCount,
                    arrived.get(), checks.get());
}

// Partial sums go around once and the result once more; chunks follow each other.
__global__ void __launch_bounds__(256, 1) reduce_by_ring(
    int* dest, const int* source, int chunk, int chunks, uint64_t* words, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int pes = nvshmem_n_pes();
  const int next = (me + 1) % pes;
  for (int c = 0; c < chunks; ++c) {
    int* to = dest + c * chunk;
    const int* from = source + c * chunk;
    if (me != 0 && threadIdx.x == 0) {
      nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, static_cast<uint64_t>(c) + 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < chunk; i += blockDim.x) {
      to[i] = from[i] + (me == 0 ? 0 : const_cast<volatile int*>(to)[i]);
    }
    if (pes > 1) {
      // The last one has the sum: it starts the second lap.
      nvshmemx_int_put_signal_nbi_block(to, to, chunk, me == pes - 1 ? words + 1 : words, 1,
                                        NVSHMEM_SIGNAL_ADD, next);
    }
  }
  for (int c = 0; c < chunks && me != pes - 1; ++c) {
    int* to = dest + c * chunk;
    if (threadIdx.x == 0) {
      nvshmem_signal_wait_until(words + 1, NVSHMEM_CMP_GE, static_cast<uint64_t>(c) + 1);
    }
    __syncthreads();
    if (me < pes - 2) {
      nvshmemx_int_put_signal_nbi_block(to, to, chunk, words + 1, 1, NVSHMEM_SIGNAL_ADD, next);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < chunk * chunks; i += blockDim.x) {
    WELL(wrong, const_cast<volatile int*>(dest)[i] == pes * i + pes * (pes - 1) / 2);
  }
  nvshmemx_barrier_all_block();
}

DEVICE_TEST(ring_reduce, "a pipelined reduction around a ring, by put with signal") {
  constexpr int kChunk = 500;
  constexpr int kChunks = 4;
  Checks checks;
  Symmetric<int> dest(kChunk * kChunks);
  Symmetric<int> source(kChunk * kChunks);
  Symmetric<uint64_t> words(2);
  std::vector<int> values(kChunk * kChunks);
  for (int i = 0; i < kChunk * kChunks; ++i) {
    values[static_cast<std::size_t>(i)] = i + suite::me();
  }
  source.write(values);
  suite::finish("memory");
  const int* from = source.get();
  suite::run_kernel("reduce_by_ring", &reduce_by_ring, 256, checks, dest.get(), from, kChunk,
                    kChunks, words.get(), checks.get());
}

}  // namespace
