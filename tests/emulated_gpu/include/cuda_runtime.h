// CUDA's runtime for translated sources: its own declarations of the host's functions, and what the
// compiler of CUDA knows by itself.
//
// Threads and errors: as CUDA's documentation says of each name.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <vector_types.h>

#undef __shared__
#undef __launch_bounds__
#undef __align__
// The memory of an OS thread is that of the block which it runs.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
// What device code is compiled for. After CUDA's headers, which take it for a compiler of PTX.
#define __CUDA_ARCH__ 900

#include "tests/emulated_gpu/block.hpp"

namespace weft_emulated {

// Of each library and program its own, so that distances to its other shared memory are small.
inline thread_local std::byte dynamic_memory[kSharedBytesMax]
    __attribute__((visibility("hidden"), aligned(1024)));

// Adds a launch to the stream.
cudaError_t launch(dim3 grid,
                   dim3 block,
                   std::size_t shared_bytes,
                   cudaStream_t stream,
                   bool is_cooperative,
                   std::function<void()> run);

// kernel<<<...>>>; what it is called with are a kernel and its arguments.
class Launcher {
 public:
  Launcher(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr)
      : grid_(grid), block_(block), shared_bytes_(shared_bytes), stream_(stream) {}

  template <typename... Parameters>
  void operator()(void (*kernel)(Parameters...),
                  std::type_identity_t<Parameters>... arguments) const {
    start(kernel, std::tuple<std::decay_t<Parameters>...>(arguments...));
  }

  template <typename Kernel, typename... Arguments>
  void operator()(Kernel kernel, Arguments... arguments) const {
    start(kernel, std::tuple<Arguments...>(arguments...));
  }

 private:
  template <typename Kernel, typename All>
  void start(Kernel kernel, All all) const {
    launch(grid_, block_, shared_bytes_, stream_, false,
           [kernel, all] { std::apply(kernel, all); });
  }

  dim3 grid_;
  dim3 block_;
  std::size_t shared_bytes_;
  cudaStream_t stream_;
};

}  // namespace weft_emulated

#include "tests/emulated_gpu/include/weft_emulated_ptx.hpp"

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  bool is_cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    is_cooperative |= config->attrs[i].id == cudaLaunchAttributeCooperative &&
                      config->attrs[i].val.cooperative != 0;
  }
  return weft_emulated::launch(
      config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, is_cooperative,
      [kernel, all = std::tuple<std::decay_t<Parameters>...>(
                   std::forward<Arguments>(arguments)...)] { std::apply(kernel, all); });
}

template <typename... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...),
                                        dim3 grid,
                                        dim3 block,
                                        void** arguments,
                                        std::size_t shared_bytes,
                                        cudaStream_t stream) {
  const auto all = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    return std::tuple<std::decay_t<Parameters>...>(
        *static_cast<std::decay_t<Parameters>*>(arguments[kAt])...);
  }(std::index_sequence_for<Parameters...>{});
  return weft_emulated::launch(grid, block, shared_bytes, stream, true,
                               [kernel, all] { std::apply(kernel, all); });
}

// ---- The host's functions that C++ programs call with other types

template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}

template <typename T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes, unsigned int flags = 0) {
  return cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}

template <typename T>
cudaError_t cudaHostAlloc(T** memory, std::size_t bytes, unsigned int flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}

template <typename T>
cudaError_t cudaMallocManaged(T** memory,
                              std::size_t bytes,
                              unsigned int flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(memory), bytes, flags);
}

template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes) {
  std::memcpy(static_cast<void*>(&symbol), from, bytes);
  return cudaSuccess;
}

template <typename... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}

template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...),
                                 cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

template <typename... Parameters>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          void (*kernel)(Parameters...),
                                                          int threads,
                                                          std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}

// ---- Of a thread

namespace weft_emulated {

inline const uint3& threadIdx() {
  return here().index;
}

inline const uint3& blockIdx() {
  return here().block->index;
}

inline const dim3& blockDim() {
  return here().block->kernel->block;
}

inline const dim3& gridDim() {
  return here().block->kernel->grid;
}

}  // namespace weft_emulated

inline void __syncthreads(weft_emulated::Place where = weft_emulated::Place::current()) {
  weft_emulated::meet_in_block(0, 0, true, where);
}

inline int __syncthreads_or(int vote,
                            weft_emulated::Place where = weft_emulated::Place::current()) {
  return weft_emulated::meet_in_block(0, 0, vote != 0, where).any ? 1 : 0;
}

inline void __syncwarp(std::uint32_t mask = ~0U,
                       weft_emulated::Place where = weft_emulated::Place::current()) {
  weft_emulated::meet_in_warp(mask, 0, where, true);
}

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  weft_emulated::order::fence();
}

inline void __nanosleep(unsigned) {
  weft_emulated::yield();
}

[[noreturn]] inline void __trap() {
  weft_emulated::trap("__trap");
}

inline std::size_t __cvta_generic_to_shared(const void* memory) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(memory) -
                                  weft_emulated::dynamic_memory);
}

inline bool __isGlobal(const void* address) {
  return !weft_emulated::is_shared(address) && !weft_emulated::is_local(address);
}

// ---- Of a warp

namespace weft_emulated {

template <typename T>
std::uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// What lane `source(lane)` brought; its own value if that one is not in the mask.
template <typename T, typename Source>
T shuffle(std::uint32_t mask, T value, int width, const Place& where, Source&& source) {
  const auto all = meet_in_warp(mask, bits_of(value), where);
  const int lane = static_cast<int>(here().lane());
  const int first = lane / width * width;
  const int from = source(lane - first);
  if (from < 0 || from >= width || (mask >> (first + from) & 1U) == 0) {
    return value;
  }
  T found;
  std::memcpy(&found, &all[static_cast<std::size_t>(first + from)], sizeof found);
  return found;
}

}  // namespace weft_emulated

template <typename T>
T __shfl_sync(std::uint32_t mask,
              T value,
              int lane,
              int width = 32,
              weft_emulated::Place where = weft_emulated::Place::current()) {
  return weft_emulated::shuffle(mask, value, width, where,
                                [lane, width](int) { return lane & (width - 1); });
}

template <typename T>
T __shfl_up_sync(std::uint32_t mask,
                 T value,
                 unsigned by,
                 int width = 32,
                 weft_emulated::Place where = weft_emulated::Place::current()) {
  return weft_emulated::shuffle(mask, value, width, where,
                                [by](int lane) { return lane - static_cast<int>(by); });
}

template <typename T>
T __shfl_xor_sync(std::uint32_t mask,
                  T value,
                  int by,
                  int width = 32,
                  weft_emulated::Place where = weft_emulated::Place::current()) {
  return weft_emulated::shuffle(mask, value, width, where, [by](int lane) { return lane ^ by; });
}

template <typename T>
unsigned __match_any_sync(std::uint32_t mask,
                          T value,
                          weft_emulated::Place where = weft_emulated::Place::current()) {
  const std::uint64_t mine = weft_emulated::bits_of(value);
  const auto all = weft_emulated::meet_in_warp(mask, mine, where);
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    same |= (mask >> lane & 1U) != 0 && all[lane] == mine ? 1U << lane : 0;
  }
  return same;
}

inline unsigned __ballot_sync(std::uint32_t mask,
                              int vote,
                              weft_emulated::Place where = weft_emulated::Place::current()) {
  const auto all = weft_emulated::meet_in_warp(mask, vote != 0 ? 1 : 0, where);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    votes |= (mask >> lane & 1U) != 0 && all[lane] != 0 ? 1U << lane : 0;
  }
  return votes;
}

inline int __any_sync(std::uint32_t mask,
                      int vote,
                      weft_emulated::Place where = weft_emulated::Place::current()) {
  return __ballot_sync(mask, vote, where) != 0 ? 1 : 0;
}

inline int __all_sync(std::uint32_t mask,
                      int vote,
                      weft_emulated::Place where = weft_emulated::Place::current()) {
  return __ballot_sync(mask, vote, where) == mask ? 1 : 0;
}

// Lanes need not be together: the least that is so.
inline unsigned __activemask() {
  return 1U << weft_emulated::here().lane();
}

namespace weft_emulated {

// What join(so far, the next) makes of the values of all lanes in the mask, from 0 on.
template <typename Join>
unsigned reduce(std::uint32_t mask, unsigned value, const Place& where, Join&& join) {
  const auto all = meet_in_warp(mask, value, where);
  unsigned joined = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    joined = (mask >> lane & 1U) != 0 ? join(joined, static_cast<unsigned>(all[lane])) : joined;
  }
  return joined;
}

}  // namespace weft_emulated

inline unsigned __reduce_max_sync(std::uint32_t mask,
                                  unsigned value,
                                  weft_emulated::Place where = weft_emulated::Place::current()) {
  return weft_emulated::reduce(mask, value, where,
                               [](unsigned a, unsigned b) { return std::max(a, b); });
}

inline unsigned __reduce_or_sync(std::uint32_t mask,
                                 unsigned value,
                                 weft_emulated::Place where = weft_emulated::Place::current()) {
  return weft_emulated::reduce(mask, value, where, [](unsigned a, unsigned b) { return a | b; });
}

// ---- Atomics

// Relaxed, as CUDA's are.
#define WEFT_EMULATED_ATOMIC(name, operation)                    \
  template <typename T>                                          \
  T name(T* word, std::type_identity_t<T> operand) {             \
    weft_emulated::poll();                                       \
    weft_emulated::has_moved();                                  \
    weft_emulated::order::stores(word);                          \
    const T before = operation(word, operand, __ATOMIC_RELAXED); \
    weft_emulated::order::loads(word);                           \
    return before;                                               \
  }                                                              \
  template <typename T>                                          \
  T name##_system(T* word, std::type_identity_t<T> operand) {    \
    return name(word, operand);                                  \
  }

WEFT_EMULATED_ATOMIC(atomicAdd, __atomic_fetch_add)
WEFT_EMULATED_ATOMIC(atomicAnd, __atomic_fetch_and)
WEFT_EMULATED_ATOMIC(atomicOr, __atomic_fetch_or)
WEFT_EMULATED_ATOMIC(atomicXor, __atomic_fetch_xor)
WEFT_EMULATED_ATOMIC(atomicExch, __atomic_exchange_n)

template <typename T>
T atomicCAS(T* word, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  weft_emulated::poll();
  weft_emulated::order::stores(word);
  if (__atomic_compare_exchange_n(word, &compare, value, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED)) {
    weft_emulated::has_moved();
  }
  weft_emulated::order::loads(word);
  return compare;
}

template <typename T>
T atomicCAS_system(T* word, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return atomicCAS(word, compare, value);
}

// ---- Numbers

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}

template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}

inline int __popcll(unsigned long long bits) {
  return __builtin_popcountll(bits);
}

inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}

inline int __ffsll(long long bits) {
  return __builtin_ffsll(bits);
}

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32U);
}

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64U);
}

inline unsigned __float_as_uint(float value) {
  return __builtin_bit_cast(unsigned, value);
}

inline float __uint_as_float(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}

using std::isinf;
using std::isnan;

inline float __fmul_rn(float a, float b) {
  return a * b;
}

inline float __fadd_rn(float a, float b) {
  return a + b;
}

inline float __fdiv_rn(float a, float b) {
  return a / b;
}

inline double __dmul_rn(double a, double b) {
  return a * b;
}

inline double __dadd_rn(double a, double b) {
  return a + b;
}
