// The ids of the tokens that a rank sends, what a group keeps of the one that it sends, and to whom an id belongs.
//
// Device code: the ids of few tokens are in shared memory, and each group counts what it needs of them; those of many were counted
// before (count_places.cuh).
#pragma once

#include <cstddef>

#include "src/gpu/moe/exchange.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

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

// Of few tokens in rank layouts, the ranks of each as bits. With fewer lanes, or a number of them that is no power of two, there are none.
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
  const Exchange& exchange;
  std::uint32_t destination;
  std::int32_t first;
  std::uint32_t count;

  __device__ Target(const Exchange& of, std::uint32_t rank)
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

// Of tokens before `token`: how many name `expert`, and how many go where it is. For ids that are here.
struct Earlier {
  std::int32_t naming;
  std::int32_t going;
};

inline __device__ Earlier count_earlier(const Exchange& exchange,
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

// Parcels of the header for a rank that has so many experts: the rows; and those for each expert, or, where they came by node, for that rank.
template <typename Path>
__device__ std::uint32_t parcels_for(const Exchange& exchange, std::uint32_t experts) {
  return 1 + (Path::kByRank ? (places_ranks(exchange) ? 1 : 0) : experts);
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
