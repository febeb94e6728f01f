// put, get, p, g, iput, iget, put_signal and atomics by NVSHMEM's names: of every type, size and
// scope, between neighbours.
#include "tests/device/nvshmem/tools.cuh"

namespace {

using suite::Checks;
using suite::Symmetric;
using suite::Wrong;

constexpr int kThreads = 64;
constexpr int kCount = 200;

// A value that all types tell apart, also those of one byte.
template <typename T>
__host__ __device__ T value_of(int pe, int i) {
  return static_cast<T>((pe * 7 + i * 3 + 1) & 63);
}

template <typename T>
__device__ bool is_equal(T a, T b) {
  return a == b;
}

template <typename T>
__device__ bool holds(const T* data, int pe, int first, int count) {
  bool is_so = true;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    is_so = is_so &&
            is_equal(const_cast<const volatile T*>(data)[first + i], value_of<T>(pe, first + i));
  }
  return is_so;
}

// One name for each size and kind: all names of a size are the same call. half and bfloat16 are in
// reductions.
// clang-format off
#define EACH_TYPE(X) \
  X(float, float) X(double, double) X(schar, signed char) X(short, short) X(int, int) X(long, long) \
  X(uchar, unsigned char) X(uint16, uint16_t) X(uint64, uint64_t) X(ptrdiff, ptrdiff_t)
// clang-format on

// All threads write the source just before a block's call: the call begins with their
// synchronization.
#define TYPED_KERNEL(name, T)                                                                 \
  __global__ void __launch_bounds__(kThreads, 1)                                              \
      typed_##name(T* dest, T* source, uint64_t* word, Wrong* wrong) {                        \
    const int me = nvshmem_my_pe();                                                           \
    const int next = (me + 1) % nvshmem_n_pes();                                              \
    const int last = (me + nvshmem_n_pes() - 1) % nvshmem_n_pes();                            \
    for (int i = threadIdx.x; i < kCount; i += blockDim.x) {                                  \
      source[i] = value_of<T>(me, i);                                                         \
    }                                                                                         \
    nvshmemx_##name##_put_block(dest, source, kCount, next);                                  \
    nvshmemx_barrier_all_block();                                                             \
    WELL(wrong, holds(dest, last, 0, kCount));                                                \
    nvshmemx_barrier_all_block();                                                             \
    if (threadIdx.x < 32) {                                                                   \
      nvshmemx_##name##_get_warp(dest, source, 50, next);                                     \
    } else if (threadIdx.x == 32) {                                                           \
      nvshmem_##name##_get_nbi(dest + 50, source + 50, 50, next);                             \
      nvshmem_quiet();                                                                        \
      nvshmem_##name##_iget(dest + 100, source + 100, 1, 1, 100, next);                       \
    }                                                                                         \
    __syncthreads();                                                                          \
    WELL(wrong, holds(dest, next, 0, kCount));                                                \
    nvshmemx_barrier_all_block();                                                             \
    if (threadIdx.x == 0) {                                                                   \
      nvshmem_##name##_p(dest, value_of<T>(me, 0), next);                                     \
      WELL(wrong, is_equal(nvshmem_##name##_g(source + 9, next), value_of<T>(next, 9)));      \
    }                                                                                         \
    nvshmemx_##name##_iput_block(dest + 1, source + 1, 2, 1, 20, next);                       \
    nvshmemx_barrier_all_block();                                                             \
    WELL(wrong, holds(dest, last, 0, 2));                                                     \
    WELL(wrong, is_equal(const_cast<const volatile T*>(dest)[39], value_of<T>(last, 20)));    \
    nvshmemx_barrier_all_block();                                                             \
    nvshmemx_##name##_put_signal_nbi_block(dest, source, kCount, word, 1, NVSHMEM_SIGNAL_ADD, \
                                           next);                                             \
    if (threadIdx.x == 0) {                                                                   \
      WELL(wrong, nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, 1) == 1);                   \
      WELL(wrong, nvshmem_signal_fetch(word) == 1);                                           \
    }                                                                                         \
    __syncthreads();                                                                          \
    WELL(wrong, holds(dest, last, 0, kCount));                                                \
    nvshmemx_barrier_all_block();                                                             \
  }
EACH_TYPE(TYPED_KERNEL)

#define TYPED_TEST(name, T)                                                             \
  {                                                                                     \
    Checks checks;                                                                      \
    Symmetric<T> dest(kCount);                                                          \
    Symmetric<T> source(kCount);                                                        \
    Symmetric<uint64_t> word(1);                                                        \
    suite::finish("memory");                                                            \
    suite::run_kernel(#name, &typed_##name, kThreads, checks, dest.get(), source.get(), \
                      word.get(), checks.get());                                        \
  }

DEVICE_TEST(every_type, "typed put, get, p, g, iput, iget and put_signal move what they say"){
    EACH_TYPE(TYPED_TEST)}
#define SIZED(bits)                                                                    \
  nvshmemx_put##bits##_block(dest, source, 1600 / bits, next);                         \
  nvshmemx_barrier_all_block();                                                        \
  WELL(wrong, holds(dest, last, 0, 200));                                              \
  nvshmemx_barrier_all_block();                                                        \
  nvshmemx_get##bits##_nbi_block(dest, source, 1600 / bits, next);                     \
  __syncthreads();                                                                     \
  if (threadIdx.x == 0) {                                                              \
    nvshmem_quiet();                                                                   \
  }                                                                                    \
  nvshmemx_iput##bits##_block(dest + 208, source, 1, 1, 1600 / bits, nvshmem_my_pe()); \
  __syncthreads();                                                                     \
  WELL(wrong, holds(dest, next, 0, 200));                                              \
  WELL(wrong, dest[208] == source[0] && dest[407 - 0] == source[199]);                 \
  nvshmemx_barrier_all_block();

__global__ void __launch_bounds__(kThreads, 1)
    sized(unsigned char* dest, unsigned char* source, Wrong* wrong) {
  const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  const int last = (nvshmem_my_pe() + nvshmem_n_pes() - 1) % nvshmem_n_pes();
  for (int i = threadIdx.x; i < 208; i += blockDim.x) {
    source[i] = value_of<unsigned char>(nvshmem_my_pe(), i);
  }
  SIZED(8)
  SIZED(16)
  SIZED(32)
  SIZED(64)
}

DEVICE_TEST(every_size, "sized names count in elements of their bits") {
  Checks checks;
  Symmetric<unsigned char> dest(512);
  Symmetric<unsigned char> source(512);
  suite::finish("memory");
  suite::run_kernel("sized", &sized, kThreads, checks, dest.get(), source.get(), checks.get());
}

// clang-format off
#define EACH_AMO(X) \
  X(int, int) X(long, long) X(uint, unsigned int) X(ulonglong, unsigned long long) X(uint32, uint32_t) X(size, size_t)
// clang-format on

#define AMO_KERNEL(name, T)                                                                        \
  __global__ void amo_##name(T* words, Wrong* wrong) {                                             \
    const int me = nvshmem_my_pe();                                                                \
    const int count = nvshmem_n_pes();                                                             \
    nvshmem_##name##_atomic_inc(words, 0);                                                         \
    nvshmem_##name##_atomic_add(words, static_cast<T>(9), 0);                                      \
    WELL(wrong, nvshmem_##name##_atomic_fetch_add(words + 1, static_cast<T>(1), 0) <               \
                    static_cast<T>(2 * count));                                                    \
    WELL(wrong, nvshmem_##name##_atomic_fetch_inc(words + 1, 0) < static_cast<T>(2 * count));      \
    nvshmem_##name##_atomic_set(words + 2, static_cast<T>(me + 5), me);                            \
    WELL(wrong, nvshmem_##name##_atomic_fetch(words + 2, me) == static_cast<T>(me + 5));           \
    WELL(wrong, nvshmem_##name##_atomic_swap(words + 2, static_cast<T>(1), me) ==                  \
                    static_cast<T>(me + 5));                                                       \
    WELL(wrong, nvshmem_##name##_atomic_compare_swap(words + 2, static_cast<T>(1),                 \
                                                     static_cast<T>(8), me) == static_cast<T>(1)); \
    WELL(wrong, nvshmem_##name##_atomic_compare_swap(words + 2, static_cast<T>(1),                 \
                                                     static_cast<T>(3), me) == static_cast<T>(8)); \
    nvshmem_barrier_all();                                                                         \
    WELL(wrong, nvshmem_##name##_g(words, 0) == static_cast<T>(10 * count));                       \
    WELL(wrong, nvshmem_##name##_g(words + 1, 0) == static_cast<T>(2 * count));                    \
    nvshmem_barrier_all();                                                                         \
  }
EACH_AMO(AMO_KERNEL)

#define AMO_TEST(name, T)                                                        \
  {                                                                              \
    Checks checks;                                                               \
    Symmetric<T> words(4);                                                       \
    suite::finish("memory");                                                     \
    suite::run_kernel(#name, &amo_##name, 1, checks, words.get(), checks.get()); \
  }

DEVICE_TEST(atomics, "atomics of every type update and fetch"){EACH_AMO(AMO_TEST)}

__global__ void bits(unsigned int* word, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  nvshmem_uint_atomic_or(word, 1U << me, 0);
  nvshmem_barrier_all();
  const unsigned all = (1U << nvshmem_n_pes()) - 1;
  WELL(wrong, nvshmem_uint_g(word, 0) == all);
  nvshmem_barrier_all();
  WELL(wrong, (nvshmem_uint_atomic_fetch_xor(word, 1U << me, 0) >> me & 1U) == 1);
  nvshmem_barrier_all();
  WELL(wrong, nvshmem_uint_atomic_fetch_and(word, 0, 0) == 0);
}

DEVICE_TEST(bitwise, "bitwise atomics") {
  Checks checks;
  Symmetric<unsigned int> word(1);
  suite::finish("memory");
  suite::run_kernel("bits", &bits, 1, checks, word.get(), checks.get());
}

// The commands that this PE has posted to other nodes.
__device__ unsigned long long commands() {
  unsigned long long count = 0;
  for (unsigned ring = 0; ring < weft::device::state().ring_count; ++ring) {
    count +=
        *reinterpret_cast<volatile unsigned long long*>(weft::device::state().ring(ring).head());
  }
  return count;
}

__global__ void __launch_bounds__(kThreads, 1) fences_of_queue_pairs(Wrong* wrong) {
  const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  const unsigned long long one = weft::device::state().ring_count != 0 ? 1 : 0;
  const unsigned long long before = commands();
  __syncthreads();
  nvshmemx_qp_fence_block(next, nullptr, 0);
  __syncthreads();
  WELL(wrong, commands() - before == one);
  __syncthreads();
  if (threadIdx.x < 32) {
    nvshmemx_qp_fence_warp(next, nullptr, 0);
  }
  __syncthreads();
  WELL(wrong, commands() - before == 2 * one);
  __syncthreads();
  if (threadIdx.x == 0) {
    nvshmemx_qp_fence(next, nullptr, 0);
  }
  __syncthreads();
  WELL(wrong, commands() - before == 3 * one);
}

DEVICE_TEST(queue_pairs, "a fence of a queue pair is one command, also of a warp or block") {
  Checks checks;
  suite::run_kernel("fences", &fences_of_queue_pairs, 1, checks, checks.get());
}

DEVICE_TEST(host_calls, "host calls act on memory of the GPU") {
  const int next = (suite::me() + 1) % suite::pe_count();
  const int last = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  Symmetric<int> dest(100);
  Symmetric<int> source(100);
  source.write(std::vector<int>(100, suite::me() + 1));
  nvshmem_barrier_all();
  nvshmem_int_put(dest.get(), source.get(), 100, next);
  nvshmem_barrier_all();
  if (dest.read()[99] != last + 1) {
    suite::fail("put: %d", dest.read()[99]);
  }
  nvshmem_barrier_all();
  nvshmem_int_p(dest.get(), 1000 + suite::me(), next);
  nvshmem_int_iput(dest.get() + 1, source.get(), 2, 1, 10, next);
  nvshmem_barrier_all();
  if (dest.read()[0] != 1000 + last || nvshmem_int_g(dest.get(), next) != 1000 + suite::me()) {
    suite::fail("p: %d", dest.read()[0]);
  }
  nvshmem_barrier_all();
  nvshmem_int_get(dest.get(), source.get(), 100, next);
  if (dest.read()[50] != next + 1) {
    suite::fail("get: %d", dest.read()[50]);
  }
  nvshmem_barrier_all();
}

DEVICE_TEST(on_stream, "calls on a stream are complete in its order") {
  const int next = (suite::me() + 1) % suite::pe_count();
  const int last = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  Symmetric<long> dest(1000);
  Symmetric<long> source(1000);
  Symmetric<uint64_t> word(1);
  Symmetric<short> small(1);
  source.write(std::vector<long>(1000, suite::me() + 1));
  nvshmem_barrier_all();
  cudaStream_t stream = nullptr;
  suite::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  nvshmemx_long_put_signal_on_stream(dest.get(), source.get(), 1000, word.get(), 4,
                                     NVSHMEM_SIGNAL_SET, next, stream);
  nvshmemx_signal_wait_until_on_stream(word.get(), NVSHMEM_CMP_EQ, 4, stream);
  nvshmemx_short_p_on_stream(small.get(), 7, next, stream);
  nvshmemx_short_wait_until_on_stream(small.get(), NVSHMEM_CMP_EQ, 7, stream);
  nvshmemx_quiet_on_stream(stream);
  nvshmemx_barrier_all_on_stream(stream);
  suite::require_cuda(cudaStreamSynchronize(stream), "the stream");
  if (dest.read()[999] != last + 1) {
    suite::fail("put_signal_on_stream: %ld", dest.read()[999]);
  }
  nvshmemx_getmem_on_stream(dest.get(), source.get(), 8000, next, stream);
  nvshmemx_barrier_on_stream(NVSHMEMX_TEAM_NODE, stream);
  nvshmemx_sync_all_on_stream(stream);
  suite::require_cuda(cudaStreamSynchronize(stream), "the stream");
  if (dest.read()[0] != next + 1) {
    suite::fail("get_on_stream: %ld", dest.read()[0]);
  }
  suite::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
  nvshmem_barrier_all();
}

}  // namespace
