// What the send of a dispatch counts before rows go: the ids of a call, rows for each expert and
// rank, the slots of rows, and the headers that tell the other ranks. 540 lines, as it is one
// computation in three steps over one piece of shared memory.
//
// Device code, by all threads of the grid.
#pragma once

#include <weft/moe/plan.hpp>

#include <cstddef>

#include "moe/src/gpu/kernels/call.cuh"
#include "moe/src/gpu/kernels/nodes.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Ids
//
// The ids of the tokens that a rank sends, what a group keeps of the one that it sends, and to whom
// an id belongs.
//
// Device code: the ids of few tokens are in shared memory, and each group counts what it needs of
// them; those of many were counted before (count_places.cuh).

// So many ids fit into shared memory, and are counted by each group.
inline constexpr std::uint32_t kIdsHere = 2048;

static_assert(kParcelTokensMax * kTopkMax <= kIdsHere);

inline __host__ __device__ bool counts_before(std::int32_t tokens, std::uint32_t topk) {
  return static_cast<std::uint32_t>(tokens) * topk > kIdsHere;
}

// Of a group, for the token that it sends.
struct GroupMemory {
  std::byte* to[kTopkMax];           // the row's places at its ranks, then those in x
  std::uint64_t* arrived[kTopkMax];  // and the ranks' words; null: staged for another node
  std::uint32_t ranks[kTopkMax];
  std::int32_t slots[kTopkMax];
  std::int32_t places[kTopkMax];
  std::uint32_t copies;      // for ranks
  std::uint32_t own_copies;  // in x
  float largest[kThreads / kWarp];
  alignas(kBulkAlignment) std::byte tail[kTailMax];
};

// Of few tokens in rank layouts, the ranks of each as bits. With fewer lanes, or a number of them
// that is no power of two, there are none.
struct RanksOfTokens {
  static constexpr std::uint32_t kLanesMin = 4;

  std::uint32_t of[kIdsHere / kLanesMin];
};

struct SendMemory {
  alignas(16) std::int32_t ids[kIdsHere];  // read by fours
  std::int32_t counts[kExpertsMax + 1];
  GroupMemory groups[kGroupsMax];  // as many as the block has; a launch has memory for no more

  __device__ GroupMemory& group() { return groups[Group::number()]; }

  static std::size_t bytes_for(int group_count) {
    return offsetof(SendMemory, groups) +
           static_cast<std::size_t>(group_count) * sizeof(GroupMemory);
  }
};

// The ids of all tokens; what is no expert's is -1.
struct Ids {
  const std::int64_t* given;
  const std::int32_t* here;    // or null
  const std::uint32_t* ranks;  // of each token, as bits; or null
  std::int32_t experts;
  std::uint32_t topk;

  __device__ std::int32_t at(std::uint32_t index) const {
    if (here != nullptr) {
      return here[index];
    }
    const std::int64_t id = given[index];
    return id < 0 || id >= experts ? -1 : static_cast<std::int32_t>(id);
  }
};

// What one row is for: the experts of a rank, or of all ranks of a node.
struct Target {
  const KernelArguments& exchange;
  std::uint32_t destination;
  std::int32_t first;
  std::uint32_t count;

  __device__ Target(const KernelArguments& of, std::uint32_t rank)
      : exchange(of),
        destination(destination_of(of, rank)),
        first(of.shape.map.first_of(static_cast<std::int32_t>(rank))),
        count(static_cast<std::uint32_t>(of.shape.map.count_of(static_cast<std::int32_t>(rank)))) {}

  __device__ bool has(std::int32_t id) const {
    if (kBetweenNodes && exchange.by_node) {
      const std::int32_t rank = id < 0 ? -1 : exchange.shape.map.rank_of(id);
      return id >= 0 && destination_of(exchange, static_cast<std::uint32_t>(rank)) == destination;
    }
    return static_cast<std::uint32_t>(id - first) < count;
  }
};

// visit(id), for all of a token's ids that are here, in their order.
template <typename Visit>
__device__ void for_ids_of(const Ids& ids, std::uint32_t token, Visit&& visit) {
  const std::int32_t* of_token = ids.here + token * ids.topk;
  if (ids.topk % 4 == 0) {
#pragma unroll 1
    for (std::uint32_t i = 0; i < ids.topk; i += 4) {
      const int4 four = *reinterpret_cast<const int4*>(of_token + i);
      visit(four.x);
      visit(four.y);
      visit(four.z);
      visit(four.w);
    }
  } else {
#pragma unroll 1
    for (std::uint32_t i = 0; i < ids.topk; ++i) {
      visit(of_token[i]);
    }
  }
}

// Of tokens before `token`: how many name `expert`, and how many go where it is. For ids that are
// here.
struct Earlier {
  std::int32_t naming;
  std::int32_t going;
};

inline __device__ Earlier count_earlier(const KernelArguments& exchange,
                                        const Ids& ids,
                                        std::uint32_t token,
                                        std::int32_t expert) {
  const Target target(exchange, static_cast<std::uint32_t>(exchange.shape.map.rank_of(expert)));
  Earlier earlier{0, 0};
#pragma unroll 1
  for (std::uint32_t begin = 0; begin < token; begin += kWarp) {
    const std::uint32_t other = begin + lane();
    bool names = false;
    bool goes = false;
    if (other < token) {
      for_ids_of(ids, other, [&](std::int32_t id) {
        names = names || id == expert;
        goes = goes || target.has(id);
      });
    }
    earlier.naming += __popc(__ballot_sync(kAllLanes, names));
    earlier.going += __popc(__ballot_sync(kAllLanes, goes));
  }
  return earlier;
}

// Parcels of the header for a rank that has so many experts: the rows; and those for each expert,
// or, where they came by node, for that rank.
template <typename Path>
__device__ std::uint32_t parcels_for(const KernelArguments& exchange, std::uint32_t experts) {
  return 1 + (Path::kByRank ? (places_ranks(exchange) ? 1 : 0) : experts);
}

// ---- Rows of experts and ranks
//
// What the header of a dispatch says: the rows for a rank, and those for each of its experts.
//
// Peers wait for headers before they know where rows go, so these ways to count are short ones: a
// thread that goes through the lanes of a token took 2 us. Device code: all threads of a block;
// counts are in shared memory, and 0 or counted before.

// All threads of a block, in expert layouts: adds the rows for a rank, and those for each of its
// experts. A warp has a token, so that its lanes are compared at once.
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

// All threads of a block, each with tokens of its own: adds the rows for a rank or its node, and
// what else the header says.
template <typename Path>
__device__ void count_by_tokens(const KernelArguments& exchange,
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

// All threads of a block: how many rows go to `rank` or its node (counts[0]), and what else the
// header says.
template <typename Path>
__device__ void count_rows(const KernelArguments& exchange,
                           const Dispatch& call,
                           const Ids& ids,
                           std::int32_t* counts,
                           std::uint32_t rank) {
  const Shape& shape = exchange.shape;
  const auto owner = static_cast<std::int32_t>(rank);
  const std::uint32_t parcels =
      parcels_for<Path>(exchange, static_cast<std::uint32_t>(shape.map.count_of(owner)));
  const auto first = static_cast<std::uint32_t>(shape.map.first_of(owner));
  const bool are_counted = !Path::kHasFewTokens && counts_before(call.tokens, ids.topk);
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
  if constexpr (kBetweenNodes || Path::kRows == Rows::WarpPerRow) {
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

// ---- Slots and headers
//
// Where the rows of a dispatch go, and the header that tells each rank of those that come. Slots
// and places:
//
// slot      of a row among those of this source at one rank: earlier tokens that go there
// place     of a row among those of this source for one expert: earlier tokens that name it; in
//           rank layouts with a row for each
// node, among those for one rank
//
// Both are counted, never drawn from a counter, so they are the same in every run. For few tokens
// each group counts for its own ones; for many, count_places has done so before.

inline __device__ std::uint64_t packed_for(const Dispatch& call,
                                           std::int32_t rows,
                                           bool as_parcels) {
  return packed(
      {rows, (call.weights != nullptr ? kHasWeights : 0U) | (as_parcels ? kAsParcels : 0U)});
}

// One warp: the header of so few tokens that each thread has one, for a rank layout.
static_assert(kParcelTokensMax <= kWarp);

template <typename Path>
__device__ void send_header_of_few(const KernelArguments& exchange,
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
__device__ void send_header(const KernelArguments& exchange,
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
inline __device__ void find_places(const KernelArguments& exchange,
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

// The same for rank layouts, where no places are needed, and the warps share the tokens. The slots
// are 0 before.
inline __device__ void find_slots_by_ranks(const KernelArguments& exchange,
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

// Adds to counts[lane] how many tokens before `token` have the bit of that lane's expert,
// bit_of(id).
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

inline __device__ void find_slots(const KernelArguments& exchange,
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

// All threads of a block, before its first barrier, so that these loads and those of the call's
// number (Entry) are on their way together.
template <typename Path>
__device__ Ids begin_ids(const KernelArguments& exchange,
                         const Dispatch& call,
                         SendMemory& shared,
                         RanksOfTokens* ranks) {
  Ids ids{call.ids, nullptr, nullptr, exchange.shape.map.experts, exchange.shape.topk};
  if (Path::kCountsSlots) {
    clear_slots(shared.group());
  }
  if (!Path::kHasFewTokens && counts_before(call.tokens, ids.topk)) {
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
__device__ void send_headers(const KernelArguments& exchange,
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
    if constexpr (Path::kByRank && Path::kHasFewTokens) {
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

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
