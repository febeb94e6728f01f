// What the header of a dispatch says: the rows for a rank, and those for each of its experts.
//
// Peers wait for headers before they know where rows go, so these ways to count are short ones: a thread that goes through the lanes of
// a token took 2 us. Device code: all threads of a block; counts are in shared memory, and 0 or counted before.
#pragma once

#include <weft/moe/plan.hpp>

#include "src/gpu/moe/ids.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// All threads of a block, in expert layouts: adds the rows for a rank, and those for each of its experts. A warp has a token, so that
// its lanes are compared at once.
inline __device__ void count_for_experts(const Ids& ids,
                                         std::uint32_t tokens,
                                         const Target& target,
                                         std::int32_t* counts) {
#pragma unroll 1
  for (std::uint32_t token = thread_of_block() / kWarp; token < tokens; token += kThreads / kWarp) {
    const std::int32_t id = lane() < ids.topk ? ids.here[token * ids.topk + lane()] : -1;
    const unsigned same = __match_any_sync(kAllLanes, id);
    const bool is_for_it = target.has(id);
    if (is_for_it && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(lane())) {
      atomicAdd(&counts[1 + id - target.first], 1);
    }
    if (__any_sync(kAllLanes, is_for_it) != 0 && lane() == 0) {
      atomicAdd(&counts[0], 1);
    }
  }
}

// All threads of a block, in rank layouts: adds the rows for a rank, of up to kThreads tokens.
inline __device__ void count_by_ranks(const Ids& ids,
                                      std::uint32_t tokens,
                                      std::uint32_t rank,
                                      std::int32_t* counts) {
  const std::uint32_t token = thread_of_block();
  const bool goes = token < tokens && (ids.ranks[token] >> rank & 1U) != 0;
  const unsigned all = __ballot_sync(kAllLanes, goes);
  if (lane() == 0 && all != 0) {
    atomicAdd(&counts[0], __popc(all));
  }
}

// All threads of a block, each with tokens of its own: adds the rows for a rank or its node, and what else the header says.
template <typename Path>
__device__ void count_by_tokens(const Exchange& exchange,
                                const Ids& ids,
                                std::uint32_t tokens,
                                std::uint32_t rank,
                                std::int32_t* counts) {
  const auto owner = static_cast<std::int32_t>(rank);
  const auto of_rank = static_cast<std::uint32_t>(exchange.shape.map.count_of(owner));
  const auto first = static_cast<std::uint32_t>(exchange.shape.map.first_of(owner));
  const Target target(exchange, rank);
#pragma unroll 1
  for (std::uint32_t token = thread_of_block(); token < tokens; token += kThreads) {
    bool goes = false;
    bool goes_to_rank = false;
#pragma unroll 1
    for (std::uint32_t i = 0; i < ids.topk; ++i) {
      const std::int32_t id = ids.at(token * ids.topk + i);
      goes = goes || target.has(id);
      const std::uint32_t local = static_cast<std::uint32_t>(id) - first;
      if constexpr (kBetweenNodes && Path::kByRank) {
        goes_to_rank = goes_to_rank || local < of_rank;
      }
      if (Path::kByRank || local >= of_rank) {
        continue;  // experts are not counted, or this one is not there
      }
      const weft::moe::Route route{ids.here + token * ids.topk,
                                   static_cast<std::int32_t>(ids.topk)};
      if (route.is_first(static_cast<std::int32_t>(i))) {
        atomicAdd(&counts[1 + local], 1);
      }
    }
    if (goes) {
      atomicAdd(&counts[0], 1);
    }
    if (goes_to_rank && places_ranks(exchange)) {
      atomicAdd(&counts[1], 1);
    }
  }
}

// All threads of a block: how many rows go to `rank` or its node (counts[0]), and what else the header says.
template <typename Path>
__device__ void count_rows(const Exchange& exchange,
                           const Dispatch& call,
                           const Ids& ids,
                           std::int32_t* counts,
                           std::uint32_t rank) {
  const Shape& shape = exchange.shape;
  const auto owner = static_cast<std::int32_t>(rank);
  const std::uint32_t parcels =
      parcels_for<Path>(exchange, static_cast<std::uint32_t>(shape.map.count_of(owner)));
  const auto first = static_cast<std::uint32_t>(shape.map.first_of(owner));
  const bool are_counted = !Path::kFew && counts_before(call.tokens, ids.topk);
  const std::int32_t* counted = shape.counts_at(exchange.workspace);
#pragma unroll 1
  for (std::uint32_t i = thread_of_block(); i < parcels; i += kThreads) {
    const auto ranks_at = static_cast<std::uint32_t>(shape.map.experts);
    const std::uint32_t from = i == 0          ? ranks_at + rank
                               : Path::kByRank ? ranks_at - shape.ranks() + rank
                                               : first + i - 1;
    counts[i] = are_counted ? counted[from] : 0;
  }
  __syncthreads();
  const std::uint32_t tokens = are_counted ? 0 : static_cast<std::uint32_t>(call.tokens);
  if constexpr (kBetweenNodes || Path::kRows == Rows::Many) {
    count_by_tokens<Path>(exchange, ids, tokens, rank, counts);
  } else if constexpr (!Path::kByRank) {
    count_for_experts(ids, tokens, Target(exchange, rank), counts);
  } else if (ids.ranks != nullptr && tokens <= kThreads) {
    count_by_ranks(ids, tokens, rank, counts);
  } else {
    count_by_tokens<Path>(exchange, ids, tokens, rank, counts);
  }
  __syncthreads();
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
