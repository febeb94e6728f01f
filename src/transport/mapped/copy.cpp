// Measured on 2 cores of an AMD EPYC (32 MiB of L3, glibc 2.36), GB/s, hot source, shared memory:
//
//   bytes     memcpy   32-byte loop   rep movsb   non-temporal
//   16 KiB      53          80           58           19
//   64 KiB      27          47           40           19
//   1 MiB       36          36           36           21
//   16 MiB      15          15           14           20
//   64 MiB       9           8           11           15
//
// glibc uses rep movsb from 2 KiB on, which on this CPU is slower than plain vector moves while the
// data fits in the first-level cache. At 64 KiB both vary from 27 to 48, so that size is left to
// glibc. Beyond the last-level cache, non-temporal stores win because they do not read the line
// first.
#include "src/transport/mapped/copy.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::transport {
namespace {

constexpr std::size_t kVectorBytesMin = 2048;
constexpr std::size_t kVectorBytesMax = std::size_t{32} << 10U;
// From here on source and destination do not fit together in a cache of 32 MiB.
constexpr std::size_t kStreamBytesMin = std::size_t{12} << 20U;

#if defined(__x86_64__)

// Copies until `dest` is a multiple of `alignment`; returns the number of bytes copied.
std::size_t copy_head(std::byte* dest, const std::byte* source, std::size_t alignment) noexcept {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(dest) % alignment;
  std::memcpy(dest, source, head);
  return head;
}

__attribute__((target("avx2"))) void copy_vectors(std::byte* dest,
                                                  const std::byte* source,
                                                  std::size_t bytes) noexcept {
  constexpr std::size_t kStep = 128;
  std::size_t at = copy_head(dest, source, sizeof(__m256i));
  for (; at + kStep <= bytes; at += kStep) {
    const auto* from = reinterpret_cast<const __m256i*>(source + at);
    auto* to = reinterpret_cast<__m256i*>(dest + at);
    const __m256i a = _mm256_loadu_si256(from);
    const __m256i b = _mm256_loadu_si256(from + 1);
    const __m256i c = _mm256_loadu_si256(from + 2);
    const __m256i d = _mm256_loadu_si256(from + 3);
    _mm256_store_si256(to, a);
    _mm256_store_si256(to + 1, b);
    _mm256_store_si256(to + 2, c);
    _mm256_store_si256(to + 3, d);
  }
  std::memcpy(dest + at, source + at, bytes - at);
}

void copy_streaming(std::byte* dest, const std::byte* source, std::size_t bytes) noexcept {
  constexpr std::size_t kStep = 64;
  constexpr std::size_t kPrefetchDistance = 512;
  std::size_t at = copy_head(dest, source, kStep);
  for (; at + kStep <= bytes; at += kStep) {
    const auto* from = reinterpret_cast<const __m128i*>(source + at);
    auto* to = reinterpret_cast<__m128i*>(dest + at);
    _mm_prefetch(reinterpret_cast<const char*>(from) + kPrefetchDistance, _MM_HINT_NTA);
    const __m128i a = _mm_loadu_si128(from);
    const __m128i b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2);
    const __m128i d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  _mm_sfence();
  std::memcpy(dest + at, source + at, bytes - at);
}

#endif

}  // namespace

void copy_large(void* dest, const void* source, std::size_t bytes) noexcept {
  if (dest == source) {
    return;
  }
#if defined(__x86_64__)
  static const bool kHasVectors = __builtin_cpu_supports("avx2") != 0;
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  if (bytes >= kStreamBytesMin) {
    return copy_streaming(to, from, bytes);
  }
  if (bytes >= kVectorBytesMin && bytes <= kVectorBytesMax && kHasVectors) {
    return copy_vectors(to, from, bytes);
  }
#endif
  std::memcpy(dest, source, bytes);
}

}  // namespace weft::transport
