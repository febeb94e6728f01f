// The send of a dispatch. Block by block: the header for each rank. Group by group: a token's row, once to each rank that
// owns one of its experts.
//
//   slot      of a row among those of this source at one rank: earlier tokens that go there
//   place     of a row among those of this source for one expert: earlier tokens that name it
//
// Both are counted, never drawn from a counter, so they are the same in every run. For few tokens each group counts for its
// own ones; for many, count_places has done so before.
#pragma once

#include <weft/moe/plan.hpp>

#include "src/gpu/moe/exchange.cuh"
#include "src/gpu/moe/quantize.cuh"
#include "src/gpu/moe/remote.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// So many ids fit into shared memory, and are counted by each group.
inline constexpr std::uint32_t kIdsHere = 2048;

inline __host__ __device__ bool counts_before(std::int32_t tokens, std::uint32_t topk) {
  return static_cast<std::uint32_t>(tokens) * topk > kIdsHere;
}

struct SendMemory {
  std::int32_t ids[kIdsHere];
  std::int32_t counts[kExpertsMax + 1];
  // Of each group:
  std::int32_t slots[kGroupsMax][kTopkMax];
  std::int32_t places[kGroupsMax][kTopkMax];
  std::byte* to[kGroupsMax][kTopkMax];           // the row's places at its ranks
  std::uint64_t* arrived[kGroupsMax][kTopkMax];  // and their words; null: staged for another node
  std::uint32_t ranks[kGroupsMax][kTopkMax];
  std::uint32_t copies[kGroupsMax];
  float largest[kGroupsMax][kThreads / kWarp];
  alignas(16) std::byte tails[kGroupsMax][kTailMax];
};

// The ids of all tokens; what is no expert's is -1.
struct Ids {
  const std::int64_t* given;
  const std::int32_t* here;  // or null
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

// One call as its kernel began it.
struct Sending {
  std::uint64_t number;
  std::uint64_t missing;  // ranks, as bits
};

// Lanes over tokens before `token`: how many name `expert`, and how many go to the rank of `first` .. `first` + `count` - 1.
struct Earlier {
  std::int32_t naming;
  std::int32_t going;
};

inline __device__ Earlier count_earlier(const Ids& ids,
                                        const weft::moe::ExpertMap& map,
                                        std::uint32_t token,
                                        std::int32_t expert) {
  const std::int32_t rank = map.rank_of(expert);
  const std::int32_t first = map.first_of(rank);
  const auto count = static_cast<std::uint32_t>(map.count_of(rank));
  Earlier earlier{0, 0};
  for (std::uint32_t begin = 0; begin < token; begin += kWarp) {
    const std::uint32_t other = begin + lane();
    bool names = false;
    bool goes = false;
    for (std::uint32_t i = 0; other < token && i < ids.topk; ++i) {
      const std::int32_t id = ids.at(other * ids.topk + i);
      names = names || id == expert;
      goes = goes || static_cast<std::uint32_t>(id - first) < count;
    }
    earlier.naming += __popc(__ballot_sync(kAllLanes, names));
    earlier.going += __popc(__ballot_sync(kAllLanes, goes));
  }
  return earlier;
}

// All threads of a block: how many rows go to `rank` (counts[0]), and to each of its experts.
inline __device__ void count_rows(const Exchange& exchange,
                                  const Dispatch& call,
                                  const Ids& ids,
                                  std::int32_t* counts,
                                  std::uint32_t rank) {
  const Shape& shape = exchange.shape;
  const auto owner = static_cast<std::int32_t>(rank);
  const auto experts = static_cast<std::uint32_t>(shape.map.count_of(owner));
  const auto first = static_cast<std::uint32_t>(shape.map.first_of(owner));
  const bool are_counted = counts_before(call.tokens, ids.topk);
  const std::int32_t* counted = exchange.workspace + 2 * shape.lanes();
  for (std::uint32_t i = thread_of_block(); i <= experts; i += kThreads) {
    const std::uint32_t from =
        i == 0 ? static_cast<std::uint32_t>(shape.map.experts) + rank : first + i - 1;
    counts[i] = are_counted ? counted[from] : 0;
  }
  __syncthreads();
  const std::uint32_t tokens = are_counted ? 0 : static_cast<std::uint32_t>(call.tokens);
  for (std::uint32_t token = thread_of_block(); token < tokens; token += kThreads) {
    bool goes = false;
    for (std::uint32_t i = 0; i < ids.topk; ++i) {
      const auto local = static_cast<std::uint32_t>(ids.at(token * ids.topk + i)) - first;
      if (local >= experts) {
        continue;
      }
      goes = true;
      const weft::moe::Route route{ids.here + token * ids.topk,
                                   static_cast<std::int32_t>(ids.topk)};
      if (route.is_first(static_cast<std::int32_t>(i))) {
        atomicAdd(&counts[1 + local], 1);
      }
    }
    if (goes) {
      atomicAdd(&counts[0], 1);
    }
  }
  __syncthreads();
}

// All threads of a block. Tells rank `rank` how many rows come.
inline __device__ void send_header(const Exchange& exchange,
                                   const Dispatch& call,
                                   const Ids& ids,
                                   SendMemory& shared,
                                   std::uint64_t number,
                                   std::uint32_t rank) {
  const Shape& shape = exchange.shape;
  count_rows(exchange, call, ids, shared.counts, rank);
  const auto experts =
      static_cast<std::uint32_t>(shape.map.count_of(static_cast<std::int32_t>(rank)));
  const std::uint32_t parcels = is_by_rank(exchange) ? 1 : 1 + experts;
  const auto me = static_cast<std::uint32_t>(exchange.me);
  for (std::uint32_t i = thread_of_block(); i < parcels; i += kThreads) {
    const std::uint64_t data = i == 0
                                   ? packed({shared.counts[0], call.weights != nullptr ? 1U : 0U})
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
    const auto rows = static_cast<std::uint32_t>(shared.counts[0]);
    device::store_relaxed(&exchange.state->staged_rows[rank], rows);
    add_staged(exchange, number, rank, kWhole - rows);
  }
  __syncthreads();
}

// The group's warps share the lanes of the token.
inline __device__ void find_places(const Exchange& exchange,
                                   const Dispatch& call,
                                   const Ids& ids,
                                   SendMemory& shared,
                                   std::uint32_t token) {
  const std::uint32_t group = Group::number();
  for (std::uint32_t i = Group::warp(); i < ids.topk; i += Group::warps()) {
    const std::uint32_t index = token * ids.topk + i;
    const std::int32_t id = ids.at(index);
    if (id < 0) {
      continue;
    }
    Earlier earlier{};
    if (counts_before(call.tokens, ids.topk)) {
      earlier.going = exchange.workspace[index];
      earlier.naming = exchange.workspace[exchange.shape.lanes() + index];
    } else {
      earlier = count_earlier(ids, exchange.shape.map, token, id);
    }
    if (lane() == 0) {
      shared.slots[group][i] = earlier.going;
      shared.places[group][i] = earlier.naming;
    }
  }
}

// The first warp of the group: where the row goes.
inline __device__ void find_copies(const Exchange& exchange,
                                   const Ids& ids,
                                   SendMemory& shared,
                                   const Sending& sending,
                                   std::uint32_t token) {
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Group::number();
  const std::int32_t id = lane() < ids.topk ? ids.at(token * ids.topk + lane()) : -1;
  const std::int32_t rank = id < 0 ? -1 : shape.map.rank_of(id);
  const unsigned same = __match_any_sync(kAllLanes, rank);
  bool sends = rank >= 0 && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(lane());
  sends = sends && (sending.missing >> static_cast<std::uint32_t>(rank) & 1) == 0;
  const unsigned senders = __ballot_sync(kAllLanes, sends);
  if (sends) {
    const int copy = __popc(senders & ((1U << lane()) - 1));
    const auto slot = static_cast<std::uint32_t>(shared.slots[group][lane()]);
    const auto me = static_cast<std::uint32_t>(exchange.me);
    const auto target = static_cast<std::uint32_t>(rank);
    std::byte* memory = exchange.memory[rank];
    const bool is_far = is_remote(exchange, target);
    shared.ranks[group][copy] = target;
    shared.to[group][copy] =
        is_far ? mine(exchange) + Staging{shape}.row_at(sending.number, target, slot)
               : memory + shape.row_at(sending.number, me, slot);
    shared.arrived[group][copy] =
        is_far ? nullptr : at<std::uint64_t>(memory, shape.arrived_at(sending.number, me, slot));
  }
  if (lane() == 0) {
    shared.copies[group] = static_cast<std::uint32_t>(__popc(senders));
  }
}

// The second warp of the group: what stands behind the payload, but scales that are made here; and the source's part of the
// plan.
inline __device__ void write_tail(const Exchange& exchange,
                                  const Dispatch& call,
                                  const Ids& ids,
                                  SendMemory& shared,
                                  std::uint32_t token) {
  const Shape& shape = exchange.shape;
  std::byte* tail = shared.tails[Group::number()];
  const std::size_t skipped = shape.row.scales_at();
  const std::uint32_t index = token * ids.topk + lane();
  if (lane() < ids.topk) {
    const std::int32_t id = ids.at(index);
    const float weight = call.weights != nullptr ? call.weights[index] : 0.0F;
    *at<std::int32_t>(tail, shape.row.ids_at() - skipped + lane() * 4) = id;
    *at<float>(tail, shape.row.weights_at() - skipped + lane() * 4) = weight;
    *at<std::int32_t>(tail, shape.row.places_at() - skipped + lane() * 4) =
        id < 0 ? 0 : shared.places[Group::number()][lane()];
    at<std::int32_t>(call.plan, shape.plan().ids_at())[index] = id;
    at<float>(call.plan, shape.plan().weights_at())[index] = weight;
    if (const std::int64_t given = call.ids[index]; given >= ids.experts) {
      Record& record = *exchange.record;
      record.bad_id = given;
      record.bad_id_at = static_cast<std::int32_t>(index);
      // SYNC moe-record (pairs with src/moe/gpu_exchange.cpp): that there is one is written last.
      device::fence_release();
      device::store_relaxed(&record.bad_id_seen, 1);
    }
  }
  if (lane() == 0) {
    *at<std::int32_t>(tail, shape.row.token_at() - skipped) = static_cast<std::int32_t>(token);
  }
  if (call.type == exchange.payload) {
    const std::size_t bytes = shape.row.scale_bytes;
    for (std::size_t i = lane(); i < bytes; i += kWarp) {
      tail[i] = call.scales[token * bytes + i];
    }
  }
}

template <Making kMaking>
__device__ void send_token(const Exchange& exchange,
                           const Dispatch& call,
                           const Ids& ids,
                           SendMemory& shared,
                           const Sending& sending,
                           std::uint32_t token) {
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Group::number();
  find_places(exchange, call, ids, shared, token);
  Group::sync();
  if (Group::warp() == 0) {
    find_copies(exchange, ids, shared, sending, token);
  } else if (Group::warp() == 1) {
    write_tail(exchange, call, ids, shared, token);
  }
  Group::sync();
  const std::uint32_t copies = shared.copies[group];
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  const Maker<kMaking> maker(exchange, call, token, shared.tails[group], shared.largest[group]);
  const auto store = [&](std::uint32_t unit, const Vector16& made) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      device::store_data(at<Vector16>(shared.to[group][copy], 0) + unit, made);
    }
  };
  maker.for_units(units, store);
  Group::sync();  // the scales are in the tail
  const auto tail_units =
      static_cast<std::uint32_t>(shape.row.bytes() - shape.row.scales_at()) / kUnit;
  for (std::uint32_t i = Group::thread(); i < tail_units * copies; i += Group::size()) {
    const std::uint32_t copy = i / tail_units;
    const std::uint32_t unit = i - copy * tail_units;
    device::store_data(at<Vector16>(shared.to[group][copy], 0) + units + unit,
                       at<Vector16>(shared.tails[group], 0)[unit]);
  }
  Group::sync();
  if (Group::thread() >= copies) {
    return;
  }
  if (std::uint64_t* word = shared.arrived[group][Group::thread()];
      !kBetweenNodes || word != nullptr) {
    // SYNC moe-row (pairs with src/gpu/moe/receive_rows.cuh): the row, then its word.
    device::fence_release();
    device::store_relaxed(word, sending.number);
  } else {
    add_staged(exchange, sending.number, shared.ranks[group][Group::thread()], 1);
  }
}

// All threads of the grid.
template <Making kMaking>
__device__ void send_rows(const Exchange& exchange,
                          const Dispatch& call,
                          SendMemory& shared,
                          std::uint64_t number) {
  const Shape& shape = exchange.shape;
  const bool are_here = !counts_before(call.tokens, shape.topk);
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  const Sending sending{number, device::load_relaxed(&exchange.state->missing)};
  Ids ids{call.ids, nullptr, shape.map.experts, shape.topk};
  if (are_here) {
    for (std::uint32_t i = thread_of_block(); i < tokens * shape.topk; i += kThreads) {
      shared.ids[i] = ids.at(i);
    }
    ids.here = shared.ids;
    __syncthreads();
  }
  for (std::uint32_t rank = blockIdx.x; rank < shape.ranks(); rank += gridDim.x) {
    if ((sending.missing >> rank & 1) == 0) {
      send_header(exchange, call, ids, shared, number, rank);
    }
  }
  if (blockIdx.x == 0 && thread_of_block() == 0) {
    *at<PlanHeader>(call.plan, 0) = {call.tokens, call.weights != nullptr ? 1 : 0};
  }
  for (std::uint32_t token = Group::index(); token < tokens; token += Group::count()) {
    send_token<kMaking>(exchange, call, ids, shared, sending, token);
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
