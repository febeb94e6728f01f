// Reductions of small and medium data, by parcels (low_latency.cuh).
//
// Two members: each thread sends parcels and combines those that come for the same places. Few of
// more members: a group of lanes has a lane for each member, which sends one parcel and waits for
// one; the lanes then combine them. More: each thread sends its parcels to all members and combines
// what comes for the same place. So all members combine all data, in one trip. Medium (a grid's
// reduce): each member combines a share and sends the results, in two trips, with less on the
// links. All write the same buffers under the same count of calls, and those of one trip in the
// same places, so that members need not choose alike between these.
#ifndef WEFT_DEVICE_REDUCE_PARCELS_CUH
#define WEFT_DEVICE_REDUCE_PARCELS_CUH

#include <weft/device/low_latency.cuh>
#include <weft/device/reduction.cuh>
#include <weft/device/standard.hpp>

namespace weft::device::detail {

template <typename T>
__device__ Blocks blocks_of(const ReduceCall<T>& call) {
  return {reinterpret_cast<std::byte*>(call.dest), reinterpret_cast<const std::byte*>(call.source),
          call.count * sizeof(T), call.source_stride * sizeof(T)};
}

// Parcels `first`, `first` + `step`, ... of each member, combined, at most kPlaces below the call's
// number; `results` has this PE's own. So many are waited for at once.
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
      const std::uint32_t run = call.run_of(team, team.size - steps_to(team, member));
#pragma unroll
      for (std::uint32_t u = 0; u < kPlaces; ++u) {
        const std::uint32_t index = first + u * step;
        wait.from[j * kPlaces + u] =
            is_sent && index < call.per_member ? call.buffer + run + index : nullptr;
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

// Sends each parcel to all members, by the thread that will combine it: it is then read before
// dest, which may be the same memory, is written.
template <typename Scope>
__device__ void send_to_all(const TeamState& team, const Blocks& blocks, const ParcelCall& call) {
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
}

template <typename Scope, typename Op, typename T, std::uint32_t kMembers>
WEFT_DEVICE_OWN_REGISTERS void receive_and_combine(const TeamState& team,
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

// log2 of the lanes of a group, one for each of at most kLaneMembersMax members.
inline constexpr std::uint32_t kLaneMembersMax = 8;

inline WEFT_HOST_DEVICE std::uint32_t lane_bits_of(std::uint32_t members) {
  return members <= 2 ? 1 : members <= 4 ? 2 : 3;
}

// A parcel for each group of lanes. A group's lanes read a parcel before one of them writes it, so
// dest may equal the source.
template <typename Scope, typename Op, typename T>
__device__ void combine_by_lanes(const TeamState& team,
                                 const Blocks& blocks,
                                 const ParcelCall& call,
                                 std::uint32_t lane_bits) {
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const std::uint32_t lanes = 1U << lane_bits;
  const std::uint32_t member = Scope::rank() & (lanes - 1);
  const std::uint32_t index = Scope::rank() >> lane_bits;
  const std::uint32_t part = bytes_in_parcel(bytes, index);
  const bool takes_part = member < team.size && index < call.per_member;
  std::uint64_t value = 0;
  if (takes_part) {
    value = load_packed(blocks.source + member * blocks.source_stride + index * kParcelBytes, part);
    if (member != team.me) {
      const std::uint32_t step = steps_to(team, member);
      const int pe = pe_of(team, member);
      store_relaxed_16(moved(call.buffer, delta_of(pe)) + call.run_of(team, step) + index, value,
                       call.epoch);
      ParcelWait<1> wait;
      wait.from[0] = call.buffer + call.run_of(team, team.size - step) + index;
      wait.pe[0] = pe;
      wait.until(call.epoch, call.operation);
      value = wait.data[0];
    }
  }
  const auto width = static_cast<int>(lanes);
  std::uint64_t result = __shfl_sync(~0U, value, 0, width);
  for (std::uint32_t j = 1; j < team.size; ++j) {
    result = combine<Op, T>(result, __shfl_sync(~0U, value, static_cast<int>(j), width));
  }
  if (takes_part && member == 0) {
    store_packed(blocks.dest + index * kParcelBytes, result, part);
  }
}

// Two members need no groups. In loops that are not unrolled: a small call waits for each line of
// code that it runs.
template <typename Scope, typename Op, typename T>
__device__ void combine_of_two(const TeamState& team,
                               const Blocks& blocks,
                               const ParcelCall& call) {
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const std::uint32_t other = 1 - team.me;
  const int pe = pe_of(team, other);
  const std::byte* own = blocks.source + team.me * blocks.source_stride;
  const std::byte* theirs = blocks.source + other * blocks.source_stride;
  Parcel* to = moved(call.buffer, delta_of(pe));
#pragma unroll 1
  for (std::uint32_t i = Scope::rank(); i < call.per_member; i += Scope::size()) {
    store_relaxed_16(to + i, load_packed(theirs + i * kParcelBytes, bytes_in_parcel(bytes, i)),
                     call.epoch);
  }
#pragma unroll 1
  for (std::uint32_t i = Scope::rank(); i < call.per_member; i += Scope::size()) {
    const std::uint32_t part = bytes_in_parcel(bytes, i);
    const std::uint64_t mine = load_packed(own + i * kParcelBytes, part);
    ParcelWait<1> wait;
    wait.from[0] = call.buffer + i;
    wait.pe[0] = pe;
    wait.until(call.epoch, call.operation);
    const std::uint64_t result =
        team.me == 0 ? combine<Op, T>(mine, wait.data[0]) : combine<Op, T>(wait.data[0], mine);
    store_packed(blocks.dest + i * kParcelBytes, result, part);
  }
}

// Whether one pass of a group of lanes for each parcel is enough, by whole warps.
template <typename Scope>
__device__ bool are_few(const TeamState& team, const ParcelCall& call) {
  return team.size <= kLaneMembersMax && LocalOf<Scope>::size() % 32 == 0 &&
         call.per_member << lane_bits_of(team.size) <= Scope::size();
}

// How many parcels for all members together are few enough for one trip. More take two, or,
// with two members, loads: reduce-scatter of 1 MiB for each took 14.3 us in a kernel by parcels,
// 11.5 by loads.
inline constexpr std::uint32_t kOneTripParcelsMax = 65536;

// Whether a reduction takes one trip. The same on all members.
template <typename Scope>
__device__ bool goes_by_parcels(const TeamState& team, std::size_t bytes) {
  return is_low_latency<Scope>(team, bytes) &&
         (team.size > 2 || parcels_of(bytes) <= kOneTripParcelsMax);
}

// Combines block k of all members into dest on member k; stride 0: the same block for all. A thread
// writes only elements of dest that it alone has read, so dest may equal the source.
template <typename Scope, typename Op, typename T>
__device__ void reduce_parcels(const TeamState& team,
                               TeamControl* control,
                               const Blocks& blocks,
                               OperationName operation) {
  const ParcelCall call = open_parcels<Scope>(team, control, blocks.bytes, operation);
  if (team.size == 2) {
    combine_of_two<Scope, Op, T>(team, blocks, call);
  } else if (are_few<Scope>(team, call)) {
    combine_by_lanes<Scope, Op, T>(team, blocks, call, lane_bits_of(team.size));
  } else {
    send_to_all<Scope>(team, blocks, call);
    if (team.size <= 4) {
      receive_and_combine<Scope, Op, T, 4>(team, blocks, call);
    } else {
      receive_and_combine<Scope, Op, T, 8>(team, blocks, call);
    }
  }
  close_parcels<Scope>(control, call);
}

// The same where the caller knows that they are few for this grid and that all members are mapped:
// a kernel of its own has little code, which each launch waits for.
template <typename Op, typename T>
__device__ void reduce_few(const TeamState& team,
                           TeamControl* control,
                           const Blocks& blocks,
                           OperationName operation) {
  const ParcelCall call = open_parcels<WholeKernel>(team, control, blocks.bytes, operation);
  combine_by_lanes<WholeKernel, Op, T>(team, blocks, call, lane_bits_of(team.size));
  close_parcels<WholeKernel>(control, call);
}

// ---- In two trips. In the first every member sends to every other, so that two buffers are enough
// (low_latency.cuh)

// The share of each member, in parcels; the last ones may have fewer.
inline __device__ std::uint32_t owned_share(const TeamState& team, std::uint32_t count) {
  return (count + team.size - 1) / team.size;
}

// Behind the runs of the shares, the buffer has room for all results.
template <typename Scope>
__device__ bool takes_two_trips(const TeamState& team, std::size_t bytes) {
  if (!kIsGrid<Scope> || team.size <= 2 || !has_wide_buffers(team) ||
      bytes > std::size_t{kWideParcels} * kParcelBytes) {
    return false;
  }
  const auto count = static_cast<std::uint32_t>(parcels_of(bytes));
  return count * (team.size - 1) > kOneTripParcelsMax &&
         owned_share(team, count) * (team.size - 1) + count <= kWideParcels;
}

struct TwoTrips {
  ParcelCall call;  // its blocks are the shares
  Parcel* results;  // behind them
  std::uint32_t count;
  Range own;  // the own share
};

// Each thread sends those parcels whose results it will receive.
template <typename Scope>
__device__ void send_to_owners(const TeamState& team, const Blocks& blocks, const TwoTrips& trips) {
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const std::uint32_t share = trips.call.per_member;
  for (std::uint32_t index = Scope::rank(); index < trips.count; index += Scope::size()) {
    const std::uint32_t owner = index / share;
    if (owner != team.me) {
      Parcel* to = moved(trips.call.buffer, delta_of(pe_of(team, owner))) +
                   trips.call.run_of(team, steps_to(team, owner)) + (index - owner * share);
      store_relaxed_16(
          to, load_packed(blocks.source + index * kParcelBytes, bytes_in_parcel(bytes, index)),
          trips.call.epoch);
    }
  }
}

template <typename Scope, typename Op, typename T, std::uint32_t kMembers>
__device__ void combine_share(const TeamState& team, const Blocks& blocks, const TwoTrips& trips) {
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  for (std::uint32_t i = Scope::rank(); i < trips.own.end - trips.own.begin; i += Scope::size()) {
    const std::uint32_t index = trips.own.begin + i;
    const std::uint32_t part = bytes_in_parcel(bytes, index);
    std::uint64_t result[1] = {load_packed(blocks.source + index * kParcelBytes, part)};
    gather_parcels<Op, T, kMembers, 1>(team, trips.call, i, 0, result);
    for (std::uint32_t k = 1; k < team.size; ++k) {
      Parcel* to = moved(trips.results, delta_of(pe_of(team, member_after(team, k))));
      store_relaxed_16(to + index, result[0], trips.call.epoch);
    }
    store_packed(blocks.dest + index * kParcelBytes, result[0], part);
  }
}

template <typename Scope>
__device__ void receive_results(const TeamState& team,
                                const Blocks& blocks,
                                const TwoTrips& trips) {
  constexpr std::uint32_t kUnroll = 2;
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  for (std::uint32_t first = Scope::rank(); first < trips.count; first += kUnroll * Scope::size()) {
    ParcelWait<kUnroll> wait;
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t index = first + u * Scope::size();
      const bool comes = index < trips.count && (index < trips.own.begin || index >= trips.own.end);
      wait.from[u] = comes ? trips.results + index : nullptr;
      wait.pe[u] = comes ? pe_of(team, index / trips.call.per_member) : -1;
    }
    wait.until(trips.call.epoch, trips.call.operation);
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      if (wait.from[u] != nullptr) {
        const std::uint32_t index = first + u * Scope::size();
        store_packed(blocks.dest + index * kParcelBytes, wait.data[u],
                     bytes_in_parcel(bytes, index));
      }
    }
  }
}

// The members own shares of the parcels: each sends the others' to them, combines its own, and
// sends the results.
template <typename Scope, typename Op, typename T>
WEFT_DEVICE_OWN_REGISTERS void reduce_in_two_trips(const TeamState& team,
                                                   TeamControl* control,
                                                   const Blocks& blocks,
                                                   OperationName operation) {
  const std::uint64_t epoch = next_call(control->exchanges);
  const auto count = static_cast<std::uint32_t>(parcels_of(blocks.bytes));
  const std::uint32_t share = owned_share(team, count);
  Parcel* buffer = wide_buffers_of(team)->exchange[epoch & 1U];
  const TwoTrips trips{{buffer, epoch, share, operation},
                       buffer + share * (team.size - 1),
                       count,
                       part_of(count, share, team.me)};
  send_to_owners<Scope>(team, blocks, trips);
  if (team.size <= 4) {
    combine_share<Scope, Op, T, 4>(team, blocks, trips);
  } else {
    combine_share<Scope, Op, T, 8>(team, blocks, trips);
  }
  receive_results<Scope>(team, blocks, trips);
  close_parcels<Scope>(control, trips.call);
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_REDUCE_PARCELS_CUH
