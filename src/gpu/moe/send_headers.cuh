// Where the rows of a dispatch go, and the header that tells each rank of those that come. Slots and places:
//
//   slot      of a row among those of this source at one rank: earlier tokens that go there
//   place     of a row among those of this source for one expert: earlier tokens that name it; in rank layouts with a row for each
//             node, among those for one rank
//
// Both are counted, never drawn from a counter, so they are the same in every run. For few tokens each group counts for its
// own ones; for many, count_places has done so before.
#pragma once

#include <weft/moe/plan.hpp>

#include <cstddef>

#include "src/gpu/moe/count_rows.cuh"
#include "src/gpu/moe/remote.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

inline __device__ std::uint64_t packed_for(const Dispatch& call,
                                           std::int32_t rows,
                                           bool as_parcels) {
  return packed(
      {rows, (call.weights != nullptr ? kHasWeights : 0U) | (as_parcels ? kAsParcels : 0U)});
}

// One warp: the header of so few tokens that each thread has one, for a rank layout.
static_assert(kParcelTokensMax <= kWarp);

template <typename Path>
__device__ void send_header_of_few(const Exchange& exchange,
                                   const Dispatch& call,
                                   const Ids& ids,
                                   std::uint64_t number,
                                   std::uint32_t rank) {
  const Target target(exchange, rank);
  bool goes = false;
#pragma unroll 1
  for (std::uint32_t i = 0; lane() < static_cast<std::uint32_t>(call.tokens) && i < ids.topk; ++i) {
    goes = goes || target.has(ids.here[lane() * ids.topk + i]);
  }
  const std::int32_t rows = __popc(__ballot_sync(kAllLanes, goes));
  if (lane() == 0) {
    const auto me = static_cast<std::uint32_t>(exchange.me);
    send_parcel(exchange.memory[rank] + exchange.shape.count_at(number, me, 0),
                packed_for(call, rows, Path::kParcels), number);
  }
}

// All threads of a block. Tells rank `rank` how many rows come.
template <typename Path>
__device__ void send_header(const Exchange& exchange,
                            const Dispatch& call,
                            const Ids& ids,
                            SendMemory& shared,
                            std::uint64_t number,
                            std::uint32_t rank) {
  const Shape& shape = exchange.shape;
  count_rows<Path>(exchange, call, ids, shared.counts, rank);
  const auto experts =
      static_cast<std::uint32_t>(shape.map.count_of(static_cast<std::int32_t>(rank)));
  const std::uint32_t parcels = parcels_for<Path>(exchange, experts);
  const auto me = static_cast<std::uint32_t>(exchange.me);
#pragma unroll 1
  for (std::uint32_t i = thread_of_block(); i < parcels; i += kThreads) {
    const std::uint64_t data = i == 0 ? packed_for(call, shared.counts[0], Path::kParcels)
                                      : static_cast<std::uint64_t>(shared.counts[i]);
    if (is_remote(exchange, rank)) {
      stage_parcel(exchange, Staging{shape}.counts_at(number, rank), i, data, number);
    } else {
      send_parcel(exchange.memory[rank] + shape.count_at(number, me, i), data, number);
    }
  }
  __syncthreads();
  if (is_remote(exchange, rank) && thread_of_block() == 0) {
    post_counts(exchange, rank, parcels, number);
    if (destination_of(exchange, rank) == rank) {
      const auto rows = static_cast<std::uint32_t>(shared.counts[0]);
      device::store_relaxed(&exchange.state->staged_rows[rank], rows);
      add_staged(exchange, number, rank, kWhole - rows);
    }
  }
  __syncthreads();
}

// The group's warps share the lanes of the token.
inline __device__ void find_places(const Exchange& exchange,
                                   const Ids& ids,
                                   GroupMemory& group,
                                   std::uint32_t token) {
#pragma unroll 1
  for (std::uint32_t i = Group::warp(); i < ids.topk; i += Group::warps()) {
    const std::int32_t id = ids.at(token * ids.topk + i);
    if (id < 0) {
      continue;
    }
    const Earlier earlier = count_earlier(exchange, ids, token, id);
    if (lane() == 0) {
      group.slots[i] = earlier.going;
      group.places[i] = earlier.naming;
    }
  }
}

// The same for rank layouts, where no places are needed, and the warps share the tokens. The slots are 0 before.
inline __device__ void find_slots_by_ranks(const Exchange& exchange,
                                           const Ids& ids,
                                           GroupMemory& group,
                                           std::uint32_t token) {
  const std::int32_t id = lane() < ids.topk ? ids.here[token * ids.topk + lane()] : -1;
  const std::int32_t mine = id < 0 ? -1 : exchange.shape.map.rank_of(id);
  std::int32_t going = 0;
#pragma unroll 1
  for (std::uint32_t first = Group::thread() - lane(); first < token; first += Group::size()) {
    const std::uint32_t ranks = first + lane() < token ? ids.ranks[first + lane()] : 0;
#pragma unroll 1
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(exchange.shape.ranks()); ++rank) {
      const std::int32_t found = __popc(__ballot_sync(kAllLanes, (ranks >> rank & 1U) != 0));
      going += rank == mine ? found : 0;
    }
  }
  if (going != 0) {
    atomicAdd(&group.slots[lane()], going);
  }
}

// Adds to counts[lane] how many tokens before `token` have the bit of that lane's expert, bit_of(id).
template <typename BitOf>
__device__ void count_bits(const Ids& ids,
                           std::uint32_t token,
                           std::int32_t (&counts)[kTopkMax],
                           BitOf&& bit_of) {
  const bool has_id = lane() < ids.topk;
  const std::uint64_t mine = has_id ? bit_of(ids.here[token * ids.topk + lane()]) : 0;
  std::int32_t going = 0;
#pragma unroll 1
  for (std::uint32_t first = Group::thread() - lane(); first < token; first += Group::size()) {
    std::uint64_t ranks = 0;
    if (first + lane() < token) {
      for_ids_of(ids, first + lane(), [&](std::int32_t id) { ranks |= bit_of(id); });
    }
#pragma unroll 1
    for (std::uint32_t i = 0; i < ids.topk; ++i) {
      const std::uint64_t rank = __shfl_sync(kAllLanes, mine, static_cast<int>(i));
      const std::int32_t found = __popc(__ballot_sync(kAllLanes, (ranks & rank) != 0));
      going += i == lane() ? found : 0;
    }
  }
  if (going != 0) {
    atomicAdd(&counts[lane()], going);
  }
}

inline __device__ void find_slots(const Exchange& exchange,
                                  const Ids& ids,
                                  GroupMemory& group,
                                  std::uint32_t token) {
  if (ids.ranks != nullptr) {
    find_slots_by_ranks(exchange, ids, group, token);
    return;
  }
  const auto rank_of = [&](std::int32_t id) {
    return static_cast<std::uint32_t>(exchange.shape.map.rank_of(id));
  };
  count_bits(ids, token, group.slots, [&](std::int32_t id) {
    return id < 0 ? 0 : std::uint64_t{1} << destination_of(exchange, rank_of(id));
  });
  if (places_ranks(exchange)) {
    count_bits(ids, token, group.places,
               [&](std::int32_t id) { return id < 0 ? 0 : std::uint64_t{1} << rank_of(id); });
  }
}

// Those of a group that counts slots, for its next token.
inline __device__ void clear_slots(GroupMemory& group) {
  if (Group::thread() < kTopkMax) {
    group.slots[Group::thread()] = 0;
    if (kBetweenNodes) {
      group.places[Group::thread()] = 0;
    }
  }
}

// All threads of a block, before its first barrier, so that these loads and those of the call's number (Entry) are on their way together.
template <typename Path>
__device__ Ids begin_ids(const Exchange& exchange,
                         const Dispatch& call,
                         SendMemory& shared,
                         RanksOfTokens* ranks) {
  Ids ids{call.ids, nullptr, nullptr, exchange.shape.map.experts, exchange.shape.topk};
  if (Path::kCountsSlots) {
    clear_slots(shared.group());
  }
  if (!Path::kFew && counts_before(call.tokens, ids.topk)) {
    return ids;
  }
  const std::uint32_t count = static_cast<std::uint32_t>(call.tokens) * ids.topk;
  // The lanes of a token are side by side in a warp.
  const bool has_ranks = Path::kCountsSlots && !kBetweenNodes &&
                         ids.topk >= RanksOfTokens::kLanesMin && (ids.topk & (ids.topk - 1)) == 0 &&
                         exchange.shape.ranks() <= kWarp;
  constexpr std::uint32_t kAtOnce = kIdsHere / kThreads;
  std::int64_t given[kAtOnce];
#pragma unroll
  for (std::uint32_t k = 0; k < kAtOnce; ++k) {
    const std::uint32_t i = thread_of_block() + k * kThreads;
    given[k] = i < count ? call.ids[i] : -1;
  }
#pragma unroll 1
  for (std::uint32_t i = thread_of_block(); i < count; i += kThreads) {
    const std::int32_t id =
        given[0] < 0 || given[0] >= ids.experts ? -1 : static_cast<std::int32_t>(given[0]);
#pragma unroll
    for (std::uint32_t k = 1; k < kAtOnce; ++k) {
      given[k - 1] = given[k];
    }
    shared.ids[i] = id;
    if (has_ranks) {
      const unsigned of_token = (kAllLanes >> (kWarp - ids.topk)) << (lane() & ~(ids.topk - 1));
      const unsigned bits =
          __reduce_or_sync(of_token, id < 0 ? 0 : 1U << exchange.shape.map.rank_of(id));
      if ((lane() & (ids.topk - 1)) == 0) {
        ranks->of[i / ids.topk] = bits;
      }
    }
  }
  ids.here = shared.ids;
  ids.ranks = has_ranks ? ranks->of : nullptr;
  return ids;
}

// All threads of the grid, behind a barrier of the block. `missing`: ranks, as bits.
template <typename Path>
__device__ void send_headers(const Exchange& exchange,
                             const Dispatch& call,
                             const Ids& ids,
                             SendMemory& shared,
                             std::uint64_t number,
                             std::uint64_t missing) {
#pragma unroll 1
  for (std::uint32_t rank = blockIdx.x; rank < exchange.shape.ranks(); rank += gridDim.x) {
    if ((missing >> rank & 1) != 0) {
      continue;
    }
    if constexpr (Path::kByRank && Path::kFew) {
      if (thread_of_block() < kWarp) {
        send_header_of_few<Path>(exchange, call, ids, number, rank);
      }
    } else {
      send_header<Path>(exchange, call, ids, shared, number, rank);
    }
  }
  if (blockIdx.x == 0 && thread_of_block() == 0) {
    auto* header = at<PlanHeader>(call.plan, 0);
    header->tokens = call.tokens;
    header->has_weights = call.weights != nullptr ? 1 : 0;
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
