// The parts of reductions: operations on elements and on words of several elements, and sums of one element
// over all members. The member that owns an element combines it, always from member 0 upwards. So the bits
// are the same on every PE and in every run.
#ifndef WEFT_DEVICE_REDUCTION_CUH
#define WEFT_DEVICE_REDUCTION_CUH

#include <weft/device/low_latency.cuh>
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

// `kPlaces` units, `step` apart, of all members, with `kMembers` loads of each in flight at once.
template <typename Op, typename T, std::uint32_t kMembers, std::uint32_t kPlaces, typename Unit>
__device__ void gather(const TeamState& team, const Unit* from, std::size_t step, Unit* results) {
  for (std::uint32_t base = 0; base < team.size; base += kMembers) {
    Unit values[kMembers][kPlaces];
#pragma unroll
    for (std::uint32_t j = 0; j < kMembers; ++j) {
      if (base + j < team.size) {
        const Unit* at = moved(from, delta_of_member(team, base + j));
#pragma unroll
        for (std::uint32_t u = 0; u < kPlaces; ++u) {
          values[j][u] = load_from(at + u * step);
        }
      }
    }
#pragma unroll
    for (std::uint32_t j = 0; j < kMembers; ++j) {
      if (base + j < team.size) {
#pragma unroll
        for (std::uint32_t u = 0; u < kPlaces; ++u) {
          results[u] = base + j == 0 ? values[j][u] : combine<Op, T>(results[u], values[j][u]);
        }
      }
    }
  }
}

// The members that receive the results.
enum class Receivers : bool { Me, All };

template <Receivers kTo, typename Unit>
__device__ void scatter(const TeamState& team, Unit* to, const Unit& value) {
  if constexpr (kTo == Receivers::Me) {
    store_unit(to, value);
  } else {
    for (std::uint32_t k = 0; k < team.size; ++k) {
      store_unit(moved(to, delta_of_member(team, member_after(team, k))), value);
    }
  }
}

template <typename Op, typename T, Receivers kTo, std::uint32_t kMembers, typename Unit>
__device__ void reduce_units(
    const TeamState& team, Unit* to, const Unit* from, std::size_t count, Crew crew) {
  constexpr std::uint32_t kPlaces = 8 / kMembers;
  std::size_t i = crew.rank;
  if constexpr (kPlaces > 1) {
    const std::size_t step = crew.size;
    for (; i + (kPlaces - 1) * step < count; i += kPlaces * step) {
      Unit results[kPlaces];
      gather<Op, T, kMembers, kPlaces>(team, from + i, step, results);
#pragma unroll
      for (std::uint32_t u = 0; u < kPlaces; ++u) {
        scatter<kTo>(team, to + i + u * step, results[u]);
      }
    }
  }
  for (; i < count; i += crew.size) {
    Unit result;
    gather<Op, T, kMembers, 1>(team, from + i, 0, &result);
    scatter<kTo>(team, to + i, result);
  }
}

// Combines `count` elements at the same place of all members, by the whole scope: in units of 16 bytes where
// both addresses allow it, the rest one by one. The thread that stores an element has read it on all members,
// so `to` may equal `from`.
template <typename Scope, typename Op, typename T, Receivers kTo>
__device__ void reduce_range(const TeamState& team, T* to, const T* from, std::size_t count) {
  const Crew crew{Scope::rank(), Scope::size()};
  const auto address = reinterpret_cast<std::uint64_t>(to);
  const bool by_vectors = ((address ^ reinterpret_cast<std::uint64_t>(from)) & 15U) == 0;
  constexpr std::size_t kPerVector = sizeof(Vector16) / sizeof(T);
  std::size_t head = by_vectors ? (-address & 15U) / sizeof(T) : count;
  head = head < count ? head : count;
  const std::size_t vectors = (count - head) / kPerVector;
  auto* to_vectors = reinterpret_cast<Vector16*>(to + head);
  const auto* from_vectors = reinterpret_cast<const Vector16*>(from + head);
  if (team.size <= 4) {
    reduce_units<Op, T, kTo, 4>(team, to_vectors, from_vectors, vectors, crew);
  } else {
    reduce_units<Op, T, kTo, 8>(team, to_vectors, from_vectors, vectors, crew);
  }
  reduce_units<Op, T, kTo, 8>(team, to, from, head, crew);
  const std::size_t done = head + vectors * kPerVector;
  reduce_units<Op, T, kTo, 8>(team, to + done, from + done, count - done, crew);
}

// ---- Small data

// Parcels `first`, `first` + `step`, ... of each member, combined, at most kPlaces below the call's number; `results` has this
// PE's own. So many are waited for at once.
template <typename Op, typename T, std::uint32_t kMembers, std::uint32_t kPlaces>
__device__ void gather_parcels(const TeamState& team,
                               const ParcelCall& call,
                               std::uint32_t first,
                               std::uint32_t step,
                               std::uint64_t (&results)[kPlaces]) {
  std::uint64_t mine[kPlaces];
#pragma unroll
  for (std::uint32_t u = 0; u < kPlaces; ++u) {
    mine[u] = results[u];
  }
  for (std::uint32_t base = 0; base < team.size; base += kMembers) {
    ParcelWait<kMembers * kPlaces> wait;
#pragma unroll
    for (std::uint32_t j = 0; j < kMembers; ++j) {
      const std::uint32_t member = base + j;
      const bool is_sent = member < team.size && member != team.me;
      const std::uint32_t after =
          member + team.size - team.me;  // how far behind this PE, modulo the size
      const std::uint32_t distance = team.size - (after < team.size ? after : after - team.size);
      const Parcel* run = is_sent ? call.buffer + call.run_of(team, distance) : nullptr;
#pragma unroll
      for (std::uint32_t u = 0; u < kPlaces; ++u) {
        const std::uint32_t index = first + u * step;
        wait.from[j * kPlaces + u] = is_sent && index < call.per_member ? run + index : nullptr;
        wait.pe[j * kPlaces + u] = is_sent ? pe_of(team, member) : -1;
        wait.data[j * kPlaces + u] = mine[u];
      }
    }
    wait.until(call.epoch, call.operation);
#pragma unroll
    for (std::uint32_t j = 0; j < kMembers; ++j) {
#pragma unroll
      for (std::uint32_t u = 0; u < kPlaces && base + j < team.size; ++u) {
        const std::uint64_t data = wait.data[j * kPlaces + u];
        results[u] = base + j == 0 ? data : combine<Op, T>(results[u], data);
      }
    }
  }
}

template <typename Scope, typename Op, typename T, std::uint32_t kMembers>
__device__ void receive_and_combine(const TeamState& team,
                                    const Blocks& blocks,
                                    const ParcelCall& call) {
  constexpr std::uint32_t kPlaces = 8 / kMembers;
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const std::byte* own = blocks.source + team.me * blocks.source_stride;
  const std::uint32_t step = Scope::size();
  for (std::uint32_t first = Scope::rank(); first < call.per_member; first += kPlaces * step) {
    std::uint64_t results[kPlaces];
#pragma unroll
    for (std::uint32_t u = 0; u < kPlaces; ++u) {
      const std::uint32_t index = first + u * step;
      results[u] = index < call.per_member
                       ? load_packed(own + index * kParcelBytes, bytes_in_parcel(bytes, index))
                       : 0;
    }
    gather_parcels<Op, T, kMembers, kPlaces>(team, call, first, step, results);
#pragma unroll
    for (std::uint32_t u = 0; u < kPlaces; ++u) {
      if (const std::uint32_t index = first + u * step; index < call.per_member) {
        store_packed(blocks.dest + index * kParcelBytes, results[u], bytes_in_parcel(bytes, index));
      }
    }
  }
}

// Combines block k of all members into dest on member k; stride 0: the same block for all. A thread writes
// only elements of dest that it alone has read, so dest may equal the source.
template <typename Scope, typename Op, typename T>
__device__ void reduce_parcels(const TeamState& team,
                               TeamControl* control,
                               const Blocks& blocks,
                               OperationName operation) {
  const ParcelCall call = open_parcels<Scope>(team, control, blocks.bytes, operation);
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  for (std::uint32_t i = Scope::rank(); i < call.per_member; i += Scope::size()) {
    const std::byte* from = blocks.source + i * kParcelBytes;
    const std::uint32_t part = bytes_in_parcel(bytes, i);
    std::uint64_t data = 0;
    for (std::uint32_t k = 1; k < team.size; ++k) {
      const std::uint32_t member = member_after(team, k);
      if (k == 1 || blocks.source_stride != 0) {
        data = load_packed(from + member * blocks.source_stride, part);
      }
      store_relaxed_16(moved(call.buffer, delta_of(pe_of(team, member))) + call.run_of(team, k) + i,
                       data, call.epoch);
    }
  }
  if (team.size <= 4) {
    receive_and_combine<Scope, Op, T, 4>(team, blocks, call);
  } else {
    receive_and_combine<Scope, Op, T, 8>(team, blocks, call);
  }
  close_parcels<Scope>(control, call);
}

}  // namespace detail
}  // namespace weft::device

#endif  // WEFT_DEVICE_REDUCTION_CUH
