// Copies between memories that this GPU maps, by all threads of a scope. They use the widest unit
// that both addresses allow, with several loads in flight before the first store. The peer's side
// is global memory; the local one may also be shared or local memory.
//
// Completion: when the call returns, this thread's part is stored (not yet visible to others) and
// its part of the source has been read.
#ifndef WEFT_DEVICE_COPY_CUH
#define WEFT_DEVICE_COPY_CUH

#include <weft/device/access.cuh>
#include <weft/device/scope.cuh>
#include <weft/device/standard.hpp>

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

// For small copies, where latency dominates: data that this SM has just written or read is in its
// L1 cache.
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

// kCount units, `step` apart; moves both addresses on. All loads are in flight before the first
// store. One address is alive at a time, not one for each unit: this saves registers.
template <Source kSource, std::uint32_t kCount, typename Unit>
__device__ void copy_together(Unit*& dest, const Unit*& source, std::size_t step) {
  Unit values[kCount];
#pragma unroll
  for (std::uint32_t u = 0; u < kCount; ++u) {
    values[u] = load_unit<kSource>(source);
    source += step;
  }
#pragma unroll
  for (std::uint32_t u = 0; u < kCount; ++u) {
    store_unit(dest, values[u]);
    dest += step;
  }
}

#ifdef __CUDACC_RDC__
// Functions that are linked later know nothing of their kernel: they may change half of the
// registers below 64 without saving them, and take higher ones if those are too few. A kernel of
// 1024 threads has no higher ones.
inline constexpr std::uint32_t kUnrollMost = 4;

template <Source kSource, std::uint32_t kCount, typename Unit>
__device__ __noinline__ void copy_batch_apart(Unit* dest, const Unit* source, std::size_t step) {
  copy_together<kSource, kCount>(dest, source, step);
}

template <Source kSource, std::uint32_t kCount, typename Unit>
__device__ void copy_batch(Unit*& dest, const Unit*& source, std::size_t step) {
  copy_batch_apart<kSource, kCount>(dest, source, step);
  dest += kCount * step;
  source += kCount * step;
}
#else
// 8 loads of 16 bytes by each of 256 threads reach 45 GB/s from one SM, as much as 1024 threads do.
inline constexpr std::uint32_t kUnrollMost = 8;

template <Source kSource, std::uint32_t kCount, typename Unit>
__device__ void copy_batch(Unit*& dest, const Unit*& source, std::size_t step) {
  copy_together<kSource, kCount>(dest, source, step);
}
#endif

// kUnroll units at a time, then 4, 2 and 1: what is left at the end costs three round trips. A
// predicated tail would cost one, and twice the registers.
template <Source kSource, std::uint32_t kUnroll, typename Unit>
__device__ void copy_units(Unit* dest, const Unit* source, std::size_t count, Crew crew) {
  const std::size_t step = crew.size;
  auto left = static_cast<std::int64_t>(count) - crew.rank;  // units from this thread's next one on
  dest += crew.rank;
  source += crew.rank;
#pragma unroll 1
  for (; left > static_cast<std::int64_t>((kUnroll - 1) * step); left -= kUnroll * step) {
    copy_batch<kSource, kUnroll>(dest, source, step);
  }
  if constexpr (kUnroll > 4) {
    if (left > static_cast<std::int64_t>(3 * step)) {
      copy_batch<kSource, 4>(dest, source, step);
      left -= 4 * step;
    }
  }
  if constexpr (kUnroll > 2) {
    if (left > static_cast<std::int64_t>(step)) {
      copy_together<kSource, 2>(dest, source, step);
      left -= 2 * step;
    }
  }
  if (kUnroll > 1 && left > 0) {
    store_unit(dest, load_few<kSource>(source));
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

// Copies data that is not a multiple of whole units, or whose local side is not global memory: the
// widest unit that both addresses share, after a head and before a tail of single bytes. Never
// inlined: the common path of a kernel stays short and in the instruction cache.
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

// More than one unit per thread. Never inlined, so that its registers are its own: a kernel that
// inlines it spills its loop state to memory, which costs 0.3 us more for each put of a few bytes
// on an H200.
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

template <std::uint32_t kUnroll, typename Unit>
__device__ void copy_alone(Unit* dest, const Unit* source, std::uint32_t count) {
#pragma unroll 1
  for (; count >= kUnroll; count -= kUnroll) {
    copy_together<Source::Peers, kUnroll>(dest, source, 1);
  }
  if constexpr (kUnroll > 4) {
    if (count >= 4) {
      copy_together<Source::Peers, 4>(dest, source, 1);
      count -= 4;
    }
  }
#pragma unroll 1
  for (; count != 0; --count) {
    store_unit(dest++, load_unit<Source::Peers>(source++));
  }
}

// Copies the payload of a command, by one thread.
inline __device__ void copy_payload(void* dest, const void* payload, std::uint32_t bytes) {
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(dest) | bytes;  // a payload is aligned
  if ((bits & 15U) == 0) {
    copy_alone<kUnrollMost>(static_cast<Vector16*>(dest), static_cast<const Vector16*>(payload),
                            bytes / 16);
  } else if ((bits & 3U) == 0) {
    copy_alone<4>(static_cast<std::uint32_t*>(dest), static_cast<const std::uint32_t*>(payload),
                  bytes / 4);
  } else {
    copy_alone<1>(static_cast<std::uint8_t*>(dest), static_cast<const std::uint8_t*>(payload),
                  bytes);
  }
}

// One lane's 16 bytes of a payload, or fewer at its end.
struct PayloadPart {
  std::byte* dest = nullptr;
  std::uint32_t bytes = 0;
  Vector16 data{};
};

template <typename T>
__device__ T* from_lane(T* pointer, int lane) {
  return reinterpret_cast<T*>(__shfl_sync(~0U, reinterpret_cast<std::uint64_t>(pointer), lane));
}

inline __device__ PayloadPart load_part(void* dest, const std::byte* payload, std::uint32_t bytes) {
  const std::uint32_t offset = Warp::rank() * static_cast<std::uint32_t>(sizeof(Vector16));
  PayloadPart part;
  if (offset < bytes) {
    part.dest = static_cast<std::byte*>(dest) + offset;
    part.bytes = min(bytes - offset, static_cast<std::uint32_t>(sizeof(Vector16)));
    part.data = load_shared(reinterpret_cast<const Vector16*>(payload + offset));
  }
  return part;
}

inline __device__ void store_part(const PayloadPart& part) {
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(part.dest) | part.bytes;
  if (part.bytes == sizeof(Vector16) && (bits & 15U) == 0) {
    store_data(reinterpret_cast<Vector16*>(part.dest), part.data);
    return;
  }
  const std::uint32_t words[] = {part.data.x, part.data.y,  // NOLINT(modernize-avoid-c-arrays)
                                 part.data.z, part.data.w};
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t left = part.bytes > 4 * i ? part.bytes - 4 * i : 0;
    if ((bits & 3U) == 0 && left != 0) {
      store_unit(reinterpret_cast<std::uint32_t*>(part.dest) + i, words[i]);
    } else {
#pragma unroll 1
      for (std::uint32_t byte = 0; byte < min(left, 4U); ++byte) {
        store_unit(reinterpret_cast<std::uint8_t*>(part.dest) + 4 * i + byte,
                   static_cast<std::uint8_t>(words[i] >> 8 * byte));
      }
    }
  }
}

}  // namespace detail

template <typename Scope, Source kSource = Source::Mine>
__device__ void copy(void* dest, const void* source, std::size_t bytes) {
  detail::copy_by_crew<kSource>(dest, source, bytes, {Scope::rank(), Scope::size()});
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_COPY_CUH
