// The low-latency protocol for small data: parcels of 8 bytes of data and the call's number, stored
// into the receiver's buffer and polled there until the number is this call's. One trip, no fence,
// no entry, and no peer writes to dest. For teams whose members are all mapped.
//
// Two buffers are enough if every member sends to every other in every call that counts. A member
// that writes in call e has left e - 1, so it has received a parcel of e - 1 from the receiver. The
// receiver had left e - 2 (after its scope's sync) when it sent that. Numbers have 64 bits, so a
// stale parcel is never mistaken for a new one. All kinds of calls, of any length, share one count
// and the buffers, so one argument covers them. A grid leaves as a whole: its blocks meet at the
// end of the call (grid.cuh `by_all`), or their kernel ends with it, and the next call's begins
// later. The last block to be through makes the count.
#ifndef WEFT_DEVICE_LOW_LATENCY_CUH
#define WEFT_DEVICE_LOW_LATENCY_CUH

#include <weft/device/divisor.hpp>
#include <weft/device/meeting.cuh>
#include <weft/device/standard.hpp>

namespace weft::device::detail {

inline constexpr std::uint32_t kParcelBytes = 8;  // of data

// The most bytes of all members together, this one's own included, for which parcels are faster
// than stores into dest. A grid's are faster as long as the buffers hold them
// (docs/PERFORMANCE.md).
template <typename Scope>
inline constexpr std::size_t kLowLatencyBytesMax = std::size_t{64} << 10U;
template <>
inline constexpr std::size_t kLowLatencyBytesMax<Warp> = std::size_t{4} << 10U;
template <>
inline constexpr std::size_t kLowLatencyBytesMax<Thread> = 128;

static_assert(kWideParcels < Divisor::kDividendEnd, "a parcel's number is divided");
static_assert(kLowLatencyBytesMax<Block> <= std::size_t{kExchangeParcels} * kParcelBytes &&
                  kLowLatencyBytesMax<Warp> <= std::size_t{kNarrowParcels} * kParcelBytes,
              "the buffer holds what every member sends");

// That a thread sends or waits for at once. Eight of a thread alone take 176 registers, 96 with
// four: a kernel of 512 threads would not start.
#ifdef __CUDACC_RDC__
inline constexpr std::uint32_t kParcelsTogether = 2;
#else
inline constexpr std::uint32_t kParcelsTogether = 4;
#endif

inline WEFT_HOST_DEVICE std::size_t parcels_of(std::size_t bytes) {
  return (bytes + kParcelBytes - 1) / kParcelBytes;
}

inline __device__ bool has_wide_buffers(const TeamState& team) {
  return team.id < kWideTeams;
}

// How many parcels the buffers of team `id` hold for a grid; `narrow` those for a block.
inline WEFT_HOST_DEVICE std::uint32_t grid_parcels_of(std::uint32_t id, std::uint32_t narrow) {
  return id < kWideTeams ? kWideParcels : narrow;
}

inline __device__ WideBuffers* wide_buffers_of(const TeamState& team) {
  return reinterpret_cast<WideBuffers*>(state().heap + kWideOffset) + team.id;
}

// Whether `bytes` from every member go by parcels. The same on all members.
template <typename Scope>
__device__ bool is_low_latency(const TeamState& team, std::size_t bytes) {
  constexpr std::size_t kParcels = kIsGrid<Scope> ? kWideParcels : kExchangeParcels;
  if (bytes > kParcels * std::size_t{kParcelBytes}) {
    return false;  // before it is multiplied
  }
  if constexpr (kIsGrid<Scope>) {
    return parcels_of(bytes) * (team.size - 1) <= grid_parcels_of(team.id, team.parcels);
  } else {
    constexpr std::size_t kMost = kLowLatencyBytesMax<Scope> / kParcelBytes;
    const std::size_t all = parcels_of(bytes) * team.size;
    return all <= kMost && (kMost <= kNarrowParcels || all <= team.parcels);
  }
}

struct Range {
  std::uint32_t begin, end;
};

// Part `index` of `count` parcels in parts of `each`; the last ones may have fewer.
inline __device__ Range part_of(std::uint32_t count, std::uint32_t each, std::uint32_t index) {
  const std::uint32_t begin = index * each < count ? index * each : count;
  return {begin, count - begin < each ? count : begin + each};
}

// The number of bytes of `data` in parcel `index`, at most 8.
inline __device__ std::uint32_t bytes_in_parcel(std::uint32_t bytes, std::uint32_t index) {
  const std::uint32_t left = bytes - index * kParcelBytes;
  return left < kParcelBytes ? left : kParcelBytes;
}

// Loads up to 8 bytes from any address as one word, with the widest loads that the address allows.
inline __device__ std::uint64_t load_packed(const std::byte* from, std::uint32_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(from);
  if (bytes == 8 && (address & 7U) == 0) {
    return *reinterpret_cast<const std::uint64_t*>(from);
  }
  if ((address & 3U) == 0 && (bytes & 3U) == 0) {
    const auto* half = reinterpret_cast<const std::uint32_t*>(from);
    return bytes == 8 ? half[0] | static_cast<std::uint64_t>(half[1]) << 32U : half[0];
  }
  std::uint64_t word = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < bytes; ++i) {
    word |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  }
  return word;
}

inline __device__ void store_packed(std::byte* to, std::uint64_t word, std::uint32_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(to);
  if (bytes == 8 && (address & 7U) == 0) {
    *reinterpret_cast<std::uint64_t*>(to) = word;
  } else if ((address & 3U) == 0 && (bytes & 3U) == 0) {
    reinterpret_cast<std::uint32_t*>(to)[0] = static_cast<std::uint32_t>(word);
    if (bytes == 8) {
      reinterpret_cast<std::uint32_t*>(to)[1] = static_cast<std::uint32_t>(word >> 32U);
    }
  } else {
#pragma unroll 1
    for (std::uint32_t i = 0; i < bytes; ++i) {
      to[i] = static_cast<std::byte>(word >> (8 * i));
    }
  }
}

// `kCount` parcels that a thread waits for together, so that their loads are in flight at once.
template <std::uint32_t kCount>
struct ParcelWait {
  const Parcel* from[kCount];  // null: none
  int pe[kCount];
  std::uint64_t data[kCount];

  __device__ void until(std::uint64_t epoch, OperationName operation) {
    Failure waiting{FailureKind::None, operation, -1, nullptr, epoch};
    spin_until(waiting, [&] {
      bool all = true;
#pragma unroll
      for (std::uint32_t j = 0; j < kCount; ++j) {
        std::uint64_t seen = epoch;
        if (from[j] != nullptr) {
          load_relaxed_16(from[j], data[j], seen);
        }
        if (seen != epoch) {
          all = false;
          waiting.pe = pe[j];
        }
      }
      return all;
    });
  }
};

// Block k of `source`, at k * source_stride, is for member k; each has `bytes` bytes.
struct Blocks {
  std::byte* dest;
  const std::byte* source;
  std::size_t bytes;
  std::size_t source_stride;
};

// State shared by the loops of one call. A member's buffer has a run of `per_member` parcels for
// each other member: first for the one before it in the team, at last for the one after it.
struct ParcelCall {
  Parcel* buffer;  // this PE's; the same address names the other members'
  std::uint64_t epoch;
  std::uint32_t per_member;  // parcels of one block
  OperationName operation;

  // The run at the member `step` after this PE, 1 .. size - 1, for what this PE sends it; and, with
  // the roles changed, the run here for the member `size - step` after this PE.
  __device__ std::uint32_t run_of(const TeamState& team, std::uint32_t step) const {
    return (team.size - 1 - step) * per_member;
  }
};

template <typename Scope>
__device__ ParcelCall open_parcels(const TeamState& team,
                                   TeamControl* control,
                                   std::size_t bytes,
                                   OperationName operation) {
  if constexpr (!kIsGrid<Scope>) {
    Scope::sync();  // all threads have left the previous call, and the source is written
  }
  const std::uint64_t epoch = next_call(control->exchanges);
  const auto per_member = static_cast<std::uint32_t>(parcels_of(bytes));
  Parcel* buffer = buffers_of(team).exchange(epoch);
  if (kIsGrid<Scope> && per_member * (team.size - 1) > team.parcels) {
    buffer = wide_buffers_of(team)->exchange[epoch & 1U];
  }
  return {buffer, epoch, per_member, operation};
}

template <typename Scope>
__device__ void close_parcels(TeamControl* control, const ParcelCall& call) {
  LocalOf<Scope>::sync();
  count_call<Scope>(control->exchanges, call.epoch);  // read after the next call's sync
}

// Sends every member its block.
template <typename Scope>
__device__ void send_blocks(const TeamState& team, const Blocks& blocks, const ParcelCall& call) {
  constexpr std::uint32_t kUnroll = kParcelsTogether;
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const std::uint32_t total = (team.size - 1) * call.per_member;
  const Divisor per_member(call.per_member);
  for (std::uint32_t first = Scope::rank(); first < total; first += kUnroll * Scope::size()) {
    std::uint64_t data[kUnroll];
    Parcel* to[kUnroll];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t item = first + u * Scope::size();
      to[u] = nullptr;
      if (item < total) {
        const std::uint32_t step = per_member.quotient(item);
        const std::uint32_t index = item - step * call.per_member;
        const std::uint32_t member = member_after(team, step + 1);
        data[u] = load_packed(blocks.source + member * blocks.source_stride + index * kParcelBytes,
                              bytes_in_parcel(bytes, index));
        to[u] =
            moved(call.buffer, delta_of(pe_of(team, member))) + call.run_of(team, step + 1) + index;
      }
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      if (to[u] != nullptr) {
        store_relaxed_16(to[u], data[u], call.epoch);
      }
    }
  }
}

template <typename Scope>
__device__ void receive_blocks(const TeamState& team,
                               const Blocks& blocks,
                               const ParcelCall& call) {
  constexpr std::uint32_t kUnroll = kParcelsTogether;
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const std::uint32_t total = (team.size - 1) * call.per_member;
  const Divisor per_member(call.per_member);
  for (std::uint32_t first = Scope::rank(); first < total; first += kUnroll * Scope::size()) {
    ParcelWait<kUnroll> wait;
    std::uint32_t member[kUnroll];
    std::uint32_t index[kUnroll];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t item = first + u * Scope::size();
      wait.from[u] = nullptr;
      if (item < total) {
        const std::uint32_t step = per_member.quotient(item);
        index[u] = item - step * call.per_member;
        member[u] = member_after(team, team.size - 1 - step);  // who sends to this PE first, first
        wait.pe[u] = pe_of(team, member[u]);
        wait.from[u] = call.buffer + call.run_of(team, step + 1) + index[u];
      }
    }
    wait.until(call.epoch, call.operation);
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      if (wait.from[u] != nullptr) {
        store_packed(blocks.dest + member[u] * blocks.bytes + index[u] * kParcelBytes, wait.data[u],
                     bytes_in_parcel(bytes, index[u]));
      }
    }
  }
}

template <typename Scope>
__device__ void exchange_parcels(const TeamState& team,
                                 TeamControl* control,
                                 const Blocks& blocks,
                                 OperationName operation) {
  const ParcelCall call = open_parcels<Scope>(team, control, blocks.bytes, operation);
  send_blocks<Scope>(team, blocks, call);
  copy<Scope>(blocks.dest + team.me * blocks.bytes, blocks.source + team.me * blocks.source_stride,
              blocks.bytes);
  receive_blocks<Scope>(team, blocks, call);
  close_parcels<Scope>(control, call);
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_LOW_LATENCY_CUH
