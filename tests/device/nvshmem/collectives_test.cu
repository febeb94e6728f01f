// Collectives and reductions by NVSHMEM's names: of every type, operation and scope, in kernels,
// from the host and on streams.
#include "tests/device/nvshmem/tools.cuh"

namespace {

using suite::Checks;
using suite::Symmetric;
using suite::Wrong;

constexpr int kThreads = 64;
constexpr int kCount = 40;

template <typename T>
__host__ __device__ T number(int value) {
  return static_cast<T>(value);
}

template <>
__host__ __device__ half number<half>(int value) {
  return __float2half(static_cast<float>(value));
}

template <>
__host__ __device__ __nv_bfloat16 number<__nv_bfloat16>(int value) {
  return __float2bfloat16(static_cast<float>(value));
}

template <typename T>
__host__ __device__ int whole(T value) {
  return static_cast<int>(value);
}

inline __host__ __device__ int whole(half value) {
  return static_cast<int>(__half2float(value));
}

inline __host__ __device__ int whole(__nv_bfloat16 value) {
  return static_cast<int>(__bfloat162float(value));
}

// Small enough for products of all types.
__host__ __device__ int mine_of(int pe, int i) {
  return 1 + (pe + i) % 2;
}

enum class Op { Sum, Prod, Min, Max };

__host__ __device__ int expected(Op op, int pes, int i) {
  int result = mine_of(0, i);
  for (int pe = 1; pe < pes; ++pe) {
    const int value = mine_of(pe, i);
    result = op == Op::Sum    ? result + value
             : op == Op::Prod ? result * value
             : op == Op::Min  ? min(result, value)
                              : max(result, value);
  }
  return result;
}

template <typename T>
__device__ void check(const T* dest, Op op, int first, int count, Wrong* wrong) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    WELL(wrong, whole(dest[i]) == expected(op, nvshmem_n_pes(), first + i));
  }
  __syncthreads();
}

#define EACH_TYPE(X)         \
  X(float, float)            \
  X(double, double)          \
  X(half, half)              \
  X(bfloat16, __nv_bfloat16) \
  X(char, char)              \
  X(schar, signed char)      \
  X(short, short)            \
  X(int, int)                \
  X(long, long)              \
  X(uchar, unsigned char)    \
  X(ushort, unsigned short)  \
  X(uint, unsigned int)      \
  X(ulong, unsigned long)    \
  X(int8, int8_t)            \
  X(uint64, uint64_t)        \
  X(size, size_t)            \
  X(ptrdiff, ptrdiff_t)

// In kernels a few types stand for all: each of these takes seconds to compile for each scope and
// operation.
// clang-format off
#define EACH_KERNEL_TYPE(X) \
  X(float, float) X(half, half) X(bfloat16, __nv_bfloat16) X(schar, signed char) X(int, int) X(uint64, uint64_t)
// clang-format on

#define REDUCE_KERNEL(name, T)                                                                     \
  __global__ void __launch_bounds__(kThreads, 1) reduce_##name(T* dest, T* source, Wrong* wrong) { \
    for (int i = threadIdx.x; i < kCount; i += blockDim.x) {                                       \
      source[i] = number<T>(mine_of(nvshmem_my_pe(), i));                                          \
    }                                                                                              \
    nvshmemx_##name##_sum_reduce_block(NVSHMEM_TEAM_WORLD, dest, source, kCount);                  \
    check(dest, Op::Sum, 0, kCount, wrong);                                                        \
    if (threadIdx.x < 32) {                                                                        \
      nvshmemx_##name##_max_reduce_warp(NVSHMEM_TEAM_WORLD, dest + kCount, source, kCount);        \
    }                                                                                              \
    __syncthreads();                                                                               \
    check(dest + kCount, Op::Max, 0, kCount, wrong);                                               \
    if (threadIdx.x == 0) {                                                                        \
      nvshmem_##name##_min_reduce(NVSHMEM_TEAM_WORLD, dest, source, 5);                            \
    }                                                                                              \
    __syncthreads();                                                                               \
    check(dest, Op::Min, 0, 5, wrong);                                                             \
    const int part = kCount / nvshmem_n_pes();                                                     \
    nvshmemx_##name##_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, dest, source, part);             \
    check(dest, Op::Sum, part * nvshmem_my_pe(), part, wrong);                                     \
    nvshmemx_barrier_all_block();                                                                  \
  }
EACH_KERNEL_TYPE(REDUCE_KERNEL)

template <typename T>
void fill(Symmetric<T>& source) {
  std::vector<T> values(kCount);
  for (int i = 0; i < kCount; ++i) {
    values[static_cast<std::size_t>(i)] = number<T>(mine_of(suite::me(), i));
  }
  source.write(values);
  nvshmem_barrier_all();
}

template <typename T>
void expect(const char* what, const Symmetric<T>& dest, Op op) {
  const std::vector<T> got = dest.read();
  for (int i = 0; i < kCount; ++i) {
    if (whole(got[static_cast<std::size_t>(i)]) != expected(op, suite::pe_count(), i)) {
      suite::fail("%s: element %d is %d", what, i, whole(got[static_cast<std::size_t>(i)]));
      return;
    }
  }
}

#define KERNEL_TEST(name, T)                                                             \
  {                                                                                      \
    Checks checks;                                                                       \
    Symmetric<T> dest(2 * kCount);                                                       \
    Symmetric<T> source(kCount);                                                         \
    suite::finish("memory");                                                             \
    suite::run_kernel(#name, &reduce_##name, kThreads, checks, dest.get(), source.get(), \
                      checks.get());                                                     \
  }

DEVICE_TEST(reductions, "reductions in kernels by every scope"){EACH_KERNEL_TYPE(KERNEL_TEST)}
#define HOST_TEST(name, T)                                                                         \
  {                                                                                                \
    Symmetric<T> dest(2 * kCount);                                                                 \
    Symmetric<T> source(kCount);                                                                   \
    fill(source);                                                                                  \
    nvshmem_##name##_max_reduce(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), kCount);             \
    expect(#name " from the host", dest, Op::Max);                                                 \
    nvshmem_barrier_all();                                                                         \
    nvshmemx_##name##_prod_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), kCount,  \
                                            nullptr);                                              \
    nvshmemx_##name##_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, source.get(), source.get(), kCount, \
                                           nullptr);                                               \
    suite::finish(#name " on a stream");                                                           \
    expect(#name " on a stream", dest, Op::Prod);                                                  \
    expect(#name " on a stream in place", source, Op::Sum);                                        \
    nvshmem_barrier_all();                                                                         \
  }

DEVICE_TEST(reductions_of_hosts,
            "reductions of every type from the host and on a stream"){EACH_TYPE(HOST_TEST)}

__global__ void __launch_bounds__(kThreads, 1)
    bits(unsigned char* small, uint32_t* large, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const unsigned all = (1U << nvshmem_n_pes()) - 1;
  if (threadIdx.x == 0) {
    small[0] = static_cast<unsigned char>(1U << me);
    large[0] = 1U << me;
    nvshmem_uchar_or_reduce(NVSHMEM_TEAM_WORLD, small + 1, small, 1);
    WELL(wrong, small[1] == all);
    nvshmem_uint32_xor_reduce(NVSHMEM_TEAM_WORLD, large + 1, large, 1);
    WELL(wrong, large[1] == all);
    nvshmem_uint32_and_reduce(NVSHMEM_TEAM_WORLD, large + 1, large, 1);
    WELL(wrong, large[1] == (nvshmem_n_pes() == 1 ? 1U : 0U));
  }
  nvshmemx_barrier_all_block();
}

DEVICE_TEST(bitwise, "bitwise reductions") {
  Checks checks;
  Symmetric<unsigned char> small(2);
  Symmetric<uint32_t> large(2);
  suite::finish("memory");
  suite::run_kernel("bits", &bits, kThreads, checks, small.get(), large.get(), checks.get());
}

__global__ void __launch_bounds__(kThreads, 1)
    exchanges(nvshmem_team_t team, long* dest, long* source, Wrong* wrong) {
  const int me = nvshmem_team_my_pe(team);
  const int count = nvshmem_team_n_pes(team);
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    source[i] = me * 100 + i;
  }
  nvshmemx_long_alltoall_block(team, dest, source, 1);
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    WELL(wrong, dest[i] == i * 100 + me);
  }
  nvshmemx_barrier_block(team);
  if (threadIdx.x < 32) {
    nvshmemx_fcollectmem_warp(team, dest, source, sizeof(long));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    WELL(wrong, dest[i] == i * 100);
  }
  nvshmemx_sync_block(team);
  if (threadIdx.x == 0) {
    nvshmem_long_broadcast(team, dest, source, 1, count - 1);
    WELL(wrong, dest[0] == (count - 1) * 100);
    nvshmem_team_sync(team);
  }
  __syncthreads();
}

DEVICE_TEST(exchanges_on_teams, "alltoall, fcollect and broadcast on teams") {
  Symmetric<long> dest(64);
  Symmetric<long> source(64);
  nvshmem_team_t own = NVSHMEM_TEAM_INVALID;
  const int width = suite::pe_count() > 1 ? suite::pe_count() / 2 : 1;
  suite::require(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, suite::me() / width * width, 1,
                                            width, nullptr, 0, &own) == 0,
                 "nvshmem_team_split_strided");
  for (const nvshmem_team_t team :
       {nvshmem_team_t{NVSHMEM_TEAM_WORLD}, nvshmem_team_t{NVSHMEM_TEAM_SHARED},
        nvshmem_team_t{NVSHMEMX_TEAM_NODE}, own}) {
    Checks checks;
    suite::run_kernel("exchanges", &exchanges, kThreads, checks, team, dest.get(), source.get(),
                      checks.get());
  }
  nvshmem_team_destroy(own);
}

DEVICE_TEST(exchanges_of_hosts, "the same from the host and on a stream") {
  const auto count = static_cast<std::size_t>(suite::pe_count());
  Symmetric<int> dest(count);
  Symmetric<int> source(count);
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = suite::me() * 100 + static_cast<int>(i);
  }
  source.write(values);
  nvshmem_barrier_all();
  nvshmem_int_alltoall(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), 1);
  if (dest.read()[count - 1] != static_cast<int>(count - 1) * 100 + suite::me()) {
    suite::fail("alltoall: %d", dest.read()[count - 1]);
  }
  nvshmem_barrier_all();
  nvshmemx_fcollectmem_on_stream(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), sizeof(int),
                                 nullptr);
  suite::finish("fcollect");
  if (dest.read()[count - 1] != static_cast<int>(count - 1) * 100) {
    suite::fail("fcollect: %d", dest.read()[count - 1]);
  }
  nvshmem_barrier_all();
  nvshmem_broadcastmem(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), sizeof(int), 0);
  if (dest.read()[0] != 0) {
    suite::fail("broadcast: %d", dest.read()[0]);
  }
  nvshmem_barrier_all();
}

}  // namespace
