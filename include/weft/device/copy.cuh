// Copies between memories that this GPU maps, by all threads of a scope. They use the widest unit that both
// addresses allow, with several loads in flight before the first store. The peer's side is global memory; the local one
// may also be shared or local memory.
//
// Completion: when the call returns, this thread's part is stored (not yet visible to others) and its part
// of the source has been read.
#ifndef WEFT_DEVICE_COPY_CUH
#define WEFT_DEVICE_COPY_CUH

#include <weft/device/access.cuh>
#include <weft/device/scope.cuh>

#include <cstddef>
#include <cstdint>

namespace weft::device {

// The owner of the source memory. Anywhere: this thread's own, which need not be global memory.
enum class Source : std::uint8_t { Mine, Peers, Anywhere };

namespace detail {

template <Source kSource>
__device__ Vector16 load_unit(const Vector16* from) {
  if constexpr (kSource == Source::Anywhere) {
    return *from;
  } else {
    return kSource == Source::Mine ? load_data(from) : load_shared(from);
  }
}

// volatile gives relaxed accesses, which bypass the L1 cache.
template <Source kSource, typename Unit>
__device__ Unit load_unit(const Unit* from) {
  return kSource == Source::Peers ? *const_cast<const volatile Unit*>(from) : *from;
}

// For small copies, where latency dominates: data that this SM has just written or read is in its L1 cache.
template <Source kSource, typename Unit>
__device__ Unit load_few(const Unit* from) {
  if constexpr (kSource == Source::Peers) {
    return load_unit<kSource>(from);
  } else {
    return *from;
  }
}

template <typename Unit>
__device__ void store_unit(Unit* to, const Unit& value) {
  *const_cast<volatile Unit*>(to) = value;
}

inline __device__ void store_unit(Vector16* to, const Vector16& value) {
  store_data(to, value);
}

// The threads that share a copy, and this thread's rank among them.
struct Crew {
  std::uint32_t rank;
  std::uint32_t size;
};

// Several loads in flight before the first store.
template <Source kSource, std::uint32_t kUnroll, typename Unit>
__device__ void copy_units(Unit* dest, const Unit* source, std::size_t count, Crew crew) {
  const std::uint32_t step = crew.size;
  std::size_t i = crew.rank;
  for (; i + (kUnroll - 1) * std::size_t{step} < count; i += kUnroll * std::size_t{step}) {
    Unit values[kUnroll];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      values[u] = load_unit<kSource>(source + i + u * std::size_t{step});
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      store_unit(dest + i + u * std::size_t{step}, values[u]);
    }
  }
#pragma unroll 1
  for (; i < count; i += step) {
    store_unit(dest + i, load_few<kSource>(source + i));
  }
}

// Copies units of sizeof(Unit), and the remaining bytes one by one.
template <Source kSource, std::uint32_t kUnroll, typename Unit>
__device__ void copy_by(std::byte* dest, const std::byte* source, std::size_t bytes, Crew crew) {
  const std::size_t count = bytes / sizeof(Unit);
  copy_units<kSource, kUnroll>(reinterpret_cast<Unit*>(dest), reinterpret_cast<const Unit*>(source),
                               count, crew);
  if constexpr (sizeof(Unit) > 1) {
    const std::size_t done = count * sizeof(Unit);
    for (std::size_t i = done + crew.rank; i < bytes; i += crew.size) {
      reinterpret_cast<volatile std::uint8_t*>(dest)[i] =
          reinterpret_cast<const volatile std::uint8_t*>(source)[i];
    }
  }
}

// Copies data that is not a multiple of whole units, or whose local side is not global memory: the widest unit that both
// addresses share, after a head and before a tail of single bytes. Never inlined: the common path of a kernel stays short
// and in the instruction cache.
template <Source kSource>
__device__ __noinline__ void copy_ragged(std::byte* to,
                                         const std::byte* from,
                                         std::size_t bytes,
                                         Crew crew) {
  constexpr std::uint32_t kUnroll = 4;
  const auto address = reinterpret_cast<std::uint64_t>(to);
  const std::uint64_t apart = address ^ reinterpret_cast<std::uint64_t>(from);
  if ((apart & 15U) == 0 && __isGlobal(to) != 0) {
    const std::size_t to_unit = -address & 15U;
    const std::size_t head = to_unit < bytes ? to_unit : bytes;
    copy_by<kSource, 1, std::uint8_t>(to, from, head, crew);
    copy_by<kSource, kUnroll, Vector16>(to + head, from + head, bytes - head, crew);
  } else if ((apart & 7U) == 0 && (address & 7U) == 0) {
    copy_by<kSource, kUnroll, std::uint64_t>(to, from, bytes, crew);
  } else if ((apart & 3U) == 0 && (address & 3U) == 0) {
    copy_by<kSource, kUnroll, std::uint32_t>(to, from, bytes, crew);
  } else {
    copy_by<kSource, kUnroll, std::uint8_t>(to, from, bytes, crew);
  }
}

// 8 loads of 16 bytes by each of 256 threads reach 45 GB/s from one SM, as much as 1024 threads do. Small copies use
// one load, to save registers.
inline constexpr std::uint32_t kUnrollMost = 8;

// More than one unit per thread. Never inlined, so that its registers are its own: a kernel that inlines it spills its
// loop state to memory, which costs 0.3 us more for each put of a few bytes on an H200.
template <Source kSource, std::uint32_t kUnroll>
__device__ __noinline__ void copy_many(void* dest,
                                       const void* source,
                                       std::size_t bytes,
                                       Crew crew) {
  const std::uint64_t bits =
      reinterpret_cast<std::uint64_t>(dest) | reinterpret_cast<std::uint64_t>(source) | bytes;
  const bool is_global = (kSource == Source::Mine ? __isGlobal(source) : __isGlobal(dest)) != 0;
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  if ((bits & 15U) == 0 && is_global) {
    copy_units<kSource, kUnroll>(static_cast<Vector16*>(dest), static_cast<const Vector16*>(source),
                                 bytes / 16, crew);
  } else if (kSource == Source::Mine && !is_global) {
    copy_ragged<Source::Anywhere>(to, from, bytes, crew);
  } else {
    copy_ragged<kSource>(to, from, bytes, crew);
  }
}

// One unit for each of the first threads.
template <Source kSource, typename Unit>
__device__ void copy_one_each(void* dest, const void* source, std::uint32_t count, Crew crew) {
  if (crew.rank < count) {
    store_unit(static_cast<Unit*>(dest) + crew.rank,
               load_few<kSource>(static_cast<const Unit*>(source) + crew.rank));
  }
}

template <Source kSource = Source::Mine, std::uint32_t kUnroll = kUnrollMost>
__device__ void copy_by_crew(void* dest, const void* source, std::size_t bytes, Crew crew) {
  const std::uint32_t bits = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(dest)) |
                             static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(source)) |
                             static_cast<std::uint32_t>(bytes);
  const bool may_be_vectors = kSource == Source::Mine || __isGlobal(dest) != 0;
  if (may_be_vectors && (bits & 15U) == 0 && bytes <= 16 * std::size_t{crew.size}) {
    copy_one_each<kSource, Vector16>(dest, source, static_cast<std::uint32_t>(bytes) / 16, crew);
  } else if ((bits & 7U) == 0 && bytes <= 8 * std::size_t{crew.size}) {
    copy_one_each<kSource, std::uint64_t>(dest, source, static_cast<std::uint32_t>(bytes) / 8,
                                          crew);
  } else {
    copy_many<kSource, kUnroll>(dest, source, bytes, crew);
  }
}

}  // namespace detail

namespace detail {

// Copies the payload of a command, by one thread. Inlined and small, since it is part of every wait loop.
inline __device__ void copy_payload(void* dest, const void* payload, std::size_t bytes) {
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(dest) | bytes;  // a payload is aligned
  const Crew alone{0, 1};
  if ((bits & 15U) == 0) {
    copy_units<Source::Peers, 4>(static_cast<Vector16*>(dest),
                                 static_cast<const Vector16*>(payload), bytes / 16, alone);
  } else if ((bits & 3U) == 0) {
    copy_units<Source::Peers, 4>(static_cast<std::uint32_t*>(dest),
                                 static_cast<const std::uint32_t*>(payload), bytes / 4, alone);
  } else {
    copy_units<Source::Peers, 1>(static_cast<std::uint8_t*>(dest),
                                 static_cast<const std::uint8_t*>(payload), bytes, alone);
  }
}

}  // namespace detail

template <typename Scope, Source kSource = Source::Mine>
__device__ void copy(void* dest, const void* source, std::size_t bytes) {
  detail::copy_by_crew<kSource>(dest, source, bytes, {Scope::rank(), Scope::size()});
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_COPY_CUH
