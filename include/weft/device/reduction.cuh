// The parts of reductions: operations on elements and on words of several elements, and sums of one
// element over all members. The member that owns an element combines it, always from member 0
// upwards. So the bits are the same on every PE and in every run.
#ifndef WEFT_DEVICE_REDUCTION_CUH
#define WEFT_DEVICE_REDUCTION_CUH

#include <weft/device/meeting.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

// For any arithmetic type; __half and __nv_bfloat16 with CUDA's headers for them.
struct Sum {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};

struct Prod {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a * b);
  }
};

struct Min {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return b < a ? b : a;
  }
};

struct Max {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return a < b ? b : a;
  }
};

// For integers.
struct And {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct Or {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct Xor {
  template <typename T>
  static __device__ T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

namespace detail {

template <typename T>
struct ReduceCall {
  T* dest;
  const T* source;
  std::size_t count;          // of one block
  std::size_t source_stride;  // elements between the blocks of members; 0: reduce
  OperationName operation;
};

// Combines element by element, for words of several elements.
template <typename Op, typename T, typename Word>
__device__ Word combine(const Word& a, const Word& b) {
  static_assert(sizeof(Word) % sizeof(T) == 0, "whole elements");
  constexpr std::uint32_t kCount = sizeof(Word) / sizeof(T);
  T left[kCount];
  T right[kCount];
  std::memcpy(left, &a, sizeof(Word));
  std::memcpy(right, &b, sizeof(Word));
#pragma unroll
  for (std::uint32_t i = 0; i < kCount; ++i) {
    left[i] = Op::apply(left[i], right[i]);
  }
  Word result;
  std::memcpy(&result, left, sizeof(Word));
  return result;
}

inline __device__ Vector16 load_from(const Vector16* from) {
  return load_shared(from);
}

template <typename Unit>
__device__ Unit load_from(const Unit* from) {
  Unit value;
  if constexpr (sizeof(Unit) == 8) {
    const std::uint64_t bits = load_relaxed(reinterpret_cast<const std::uint64_t*>(from));
    std::memcpy(&value, &bits, sizeof(Unit));
  } else if constexpr (sizeof(Unit) == 4) {
    const std::uint32_t bits = load_relaxed(reinterpret_cast<const std::uint32_t*>(from));
    std::memcpy(&value, &bits, sizeof(Unit));
  } else if constexpr (sizeof(Unit) == 2) {
    const std::uint16_t bits = *reinterpret_cast<const volatile std::uint16_t*>(from);
    std::memcpy(&value, &bits, sizeof(Unit));
  } else {
    const std::uint8_t bits = *reinterpret_cast<const volatile std::uint8_t*>(from);
    static_assert(sizeof(Unit) == 1, "elements of 1, 2, 4 or 8 bytes");
    std::memcpy(&value, &bits, sizeof(Unit));
  }
  return value;
}

// The members that receive the results.
enum class Receivers : bool { Me, All };

// Where the memory of up to kMembers members is, from this PE's; looked up once for all units. To
// load: from member 0 on; to store: from the one after this PE on, so that not all PEs store to the
// same one.
template <std::uint32_t kMembers>
struct MemberDeltas {
  std::int64_t from[kMembers];
  std::int64_t to[kMembers];

  explicit __device__ MemberDeltas(const TeamState& team) {
#pragma unroll
    for (std::uint32_t j = 0; j < kMembers; ++j) {
      if (j < team.size) {
        from[j] = delta_of_member(team, j);
        to[j] = delta_of_member(team, member_after(team, j + 1));
      }
    }
  }
};

// `kPlaces` units, `step` apart, of a team of at most kMembers: all loads are in flight at once.
template <typename Op,
          typename T,
          Receivers kTo,
          std::uint32_t kPlaces,
          std::uint32_t kMembers,
          typename Unit>
__device__ void reduce_together(const TeamState& team,
                                const MemberDeltas<kMembers>& deltas,
                                Unit* to,
                                const Unit* from,
                                std::size_t step) {
  Unit values[kMembers][kPlaces];
#pragma unroll
  for (std::uint32_t j = 0; j < kMembers; ++j) {
#pragma unroll
    for (std::uint32_t u = 0; u < kPlaces; ++u) {
      if (j < team.size) {
        values[j][u] = load_from(moved(from, deltas.from[j]) + u * step);
      }
    }
  }
#pragma unroll
  for (std::uint32_t j = 1; j < kMembers; ++j) {
#pragma unroll
    for (std::uint32_t u = 0; u < kPlaces; ++u) {
      if (j < team.size) {
        values[0][u] = combine<Op, T>(values[0][u], values[j][u]);
      }
    }
  }
#pragma unroll
  for (std::uint32_t j = 0; j < (kTo == Receivers::Me ? 1 : kMembers); ++j) {
#pragma unroll
    for (std::uint32_t u = 0; u < kPlaces; ++u) {
      if (j < team.size) {
        store_unit(moved(to, kTo == Receivers::Me ? 0 : deltas.to[j]) + u * step, values[0][u]);
      }
    }
  }
}

// For teams of at most kMembers. A kernel with all of them inlined spilled 2 KB for each thread.
template <typename Op,
          typename T,
          Receivers kTo,
          std::uint32_t kMembers,
          std::uint32_t kPlaces,
          typename Unit>
WEFT_DEVICE_OWN_REGISTERS void reduce_units(
    const TeamState& team, Unit* to, const Unit* from, std::size_t count, Crew crew) {
  const MemberDeltas<kMembers> deltas(team);
  const std::size_t step = crew.size;
  std::size_t i = crew.rank;
  if constexpr (kPlaces > 1) {
    for (; i + (kPlaces - 1) * step < count; i += kPlaces * step) {
      reduce_together<Op, T, kTo, kPlaces>(team, deltas, to + i, from + i, step);
    }
  }
  for (; i < count; i += step) {
    reduce_together<Op, T, kTo, 1>(team, deltas, to + i, from + i, step);
  }
}

// For teams of any size, and for what is no multiple of 16 bytes.
template <typename Op, typename T, Receivers kTo, typename Unit>
WEFT_DEVICE_OWN_REGISTERS void reduce_units_of_any(
    const TeamState& team, Unit* to, const Unit* from, std::size_t count, Crew crew) {
  constexpr std::uint32_t kTogether = 4;
  for (std::size_t i = crew.rank; i < count; i += crew.size) {
    Unit result = load_from(moved(from + i, delta_of_member(team, 0)));
    for (std::uint32_t first = 1; first < team.size; first += kTogether) {
      Unit values[kTogether];
#pragma unroll
      for (std::uint32_t j = 0; j < kTogether; ++j) {
        if (first + j < team.size) {
          values[j] = load_from(moved(from + i, delta_of_member(team, first + j)));
        }
      }
#pragma unroll
      for (std::uint32_t j = 0; j < kTogether; ++j) {
        if (first + j < team.size) {
          result = combine<Op, T>(result, values[j]);
        }
      }
    }
    for (std::uint32_t k = 0; k < (kTo == Receivers::Me ? 1 : team.size); ++k) {
      const std::uint32_t member = member_after(team, k);
      store_unit(moved(to + i, delta_of_member(team, member)), result);
    }
  }
}

// Combines `count` elements at the same place of all members, by the whole scope: in units of 16
// bytes where both addresses allow it, the rest one by one. The thread that stores an element has
// read it on all members, so `to` may equal `from`.
template <typename Scope, typename Op, typename T, Receivers kTo>
__device__ void reduce_range(const TeamState& team, T* to, const T* from, std::size_t count) {
  // A grid has loads enough in flight with one place for each thread; more of them collide with its
  // stores.
  constexpr std::uint32_t kPlaces = std::is_base_of<Grid, Scope>::value ? 1 : 2;
  const Crew crew{Scope::rank(), Scope::size()};
  const auto address = reinterpret_cast<std::uint64_t>(to);
  const bool by_vectors = ((address ^ reinterpret_cast<std::uint64_t>(from)) & 15U) == 0;
  constexpr std::size_t kPerVector = sizeof(Vector16) / sizeof(T);
  std::size_t head = by_vectors ? (-address & 15U) / sizeof(T) : count;
  head = head < count ? head : count;
  const std::size_t vectors = (count - head) / kPerVector;
  auto* to_vectors = reinterpret_cast<Vector16*>(to + head);
  const auto* from_vectors = reinterpret_cast<const Vector16*>(from + head);
  if (team.size <= 2) {
    reduce_units<Op, T, kTo, 2, 4>(team, to_vectors, from_vectors, vectors, crew);
  } else if (team.size <= 4) {
    reduce_units<Op, T, kTo, 4, kPlaces>(team, to_vectors, from_vectors, vectors, crew);
  } else if (team.size <= 8) {
    reduce_units<Op, T, kTo, 8, 1>(team, to_vectors, from_vectors, vectors, crew);
  } else {
    reduce_units_of_any<Op, T, kTo>(team, to_vectors, from_vectors, vectors, crew);
  }
  const std::size_t done = head + vectors * kPerVector;
  reduce_units_of_any<Op, T, kTo>(team, to, from, head, crew);
  reduce_units_of_any<Op, T, kTo>(team, to + done, from + done, count - done, crew);
}

}  // namespace detail
}  // namespace weft::device

#endif  // WEFT_DEVICE_REDUCTION_CUH
