// Loads, stores and fences with their memory order and scope, named as in PTX (PTX ISA, "Memory
// Consistency Model"). This is the only device file with memory instructions; everything above it
// is C++. All accesses have system scope, since the other side is another GPU or the CPU.
//
// Relaxed loads and stores of whole words are never torn. The vector forms are for data, not for
// words.
#ifndef WEFT_DEVICE_ACCESS_CUH
#define WEFT_DEVICE_ACCESS_CUH

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error \
    "Weft's device code needs a GPU of sm_80 or later: compile with -arch=sm_80, or with CMAKE_CUDA_ARCHITECTURES of 80 and more"
#endif

#include <weft/device/standard.hpp>

// PTX 8.6 has one-directional fences, for sm_90 and later. An acquire fence alone takes 0.02 us on
// an H200; a fence in both directions takes 0.6 us, because it also waits for stores.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && \
    (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 8))
#define WEFT_DEVICE_HALF_FENCES 1
#else
#define WEFT_DEVICE_HALF_FENCES 0
#endif

namespace weft::device {

inline __device__ std::uint32_t load_relaxed(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

inline __device__ std::uint64_t load_relaxed(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

inline __device__ std::uint32_t load_acquire(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

inline __device__ std::uint64_t load_acquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

inline __device__ void store_relaxed(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

inline __device__ void store_relaxed(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

inline __device__ void store_release(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

inline __device__ void store_release(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Visible to threads of this GPU only.
inline __device__ void store_release_on_gpu(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// A thread that observes a later store of this thread also observes what this thread did and saw
// before the fence. After a scope's sync, that includes what the whole scope did.
inline __device__ void fence_release() {
#if WEFT_DEVICE_HALF_FENCES
  asm volatile("fence.release.sys;" ::: "memory");
#else
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

// After a relaxed load that observed a store: what was stored before that store is visible now.
inline __device__ void fence_acquire() {
#if WEFT_DEVICE_HALF_FENCES
  asm volatile("fence.acquire.sys;" ::: "memory");
#else
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

// The same two, between threads of this GPU.
inline __device__ void fence_release_on_gpu() {
#if WEFT_DEVICE_HALF_FENCES
  asm volatile("fence.release.gpu;" ::: "memory");
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

inline __device__ void fence_acquire_on_gpu() {
#if WEFT_DEVICE_HALF_FENCES
  asm volatile("fence.acquire.gpu;" ::: "memory");
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

// Also orders this thread's earlier stores before its later loads.
inline __device__ void fence_full() {
  asm volatile("fence.sc.sys;" ::: "memory");
}

// ---- Data, 16 bytes at a time

struct alignas(16) Vector16 {
  std::uint32_t x, y, z, w;
};

// For memory that only this kernel writes, or whose last writes it has acquired. Cached: what is
// put is often what this SM has just read, or reads again.
inline __device__ Vector16 load_data(const Vector16* from) {
  Vector16 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

// For memory that others write: bypasses the L1 cache, which is not coherent with their writes.
inline __device__ Vector16 load_shared(const Vector16* from) {
  Vector16 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

inline __device__ void store_data(Vector16* to, const Vector16& v) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

// Stores two 8-byte words in one instruction. Each word is atomic; the pair is not.
inline __device__ void store_relaxed_pair(std::uint64_t* to, std::uint64_t a, std::uint64_t b) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}

inline __device__ void load_relaxed_pair(const std::uint64_t* from,
                                         std::uint64_t& a,
                                         std::uint64_t& b) {
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0,%1}, [%2];"
               : "=l"(a), "=l"(b)
               : "l"(from)
               : "memory");
}

// 16 bytes, never torn: PTX's 128-bit scalar is single-copy atomic, a vector of two words is not.
inline __device__ void store_relaxed_16(void* to, std::uint64_t low, std::uint64_t high) {
  asm volatile(
      "{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }" ::"l"(to),
      "l"(low), "l"(high)
      : "memory");
}

inline __device__ void load_relaxed_16(const void* from, std::uint64_t& low, std::uint64_t& high) {
  asm volatile("{ .reg .b128 v; ld.relaxed.sys.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
               : "=l"(low), "=l"(high)
               : "l"(from)
               : "memory");
}

// Nanoseconds of the GPU's global timer; coarse.
inline __device__ std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_ACCESS_CUH
