// One combine. Send: for each row that a dispatch brought here, a group sums the experts' rows in the order of lanes (or
// sends each), and stores the answer where the source looks for it: at token * topk + the first lane that came here, so
// nobody has to be told a place. Receive: for each token a group waits for its answers and sums them, ranks ascending, or
// lanes ascending.
//
// Weights that come only now go to all ranks first, as parcels; the experts' ranks wait for those of a row when they sum it.
#pragma once

#include "src/gpu/moe/fp8_sums.cuh"
#include "src/gpu/moe/remote.cuh"
#include "src/gpu/moe/sums.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

struct CombineMemory {
  Terms terms[kGroupsMax];
  std::byte* to[kGroupsMax][kTopkMax];
  std::uint64_t* answered[kGroupsMax][kTopkMax];  // null: the answer is put to another node
};

struct Combining {
  const Exchange& exchange;
  const Combine& call;
  CombineMemory& shared;
  Call entered;
  std::uint64_t missing;  // ranks, as bits

  __device__ std::uint64_t number() const { return entered.number; }

  __device__ bool weighs() const { return call.weighting != WEFT_MOE_UNWEIGHTED; }

  // The experts' rank sums before it sends.
  __device__ bool is_reduced() const {
    return call.precision == WEFT_MOE_REDUCED || call.precision == WEFT_MOE_FP8;
  }

  __device__ bool asks_for_weights() const {
    return is_reduced() && call.weighting == WEFT_MOE_WEIGHTS_GIVEN;
  }

  __device__ bool is_gone(std::uint32_t rank) const { return (missing >> rank & 1) != 0; }

  __device__ std::uint32_t mode() const {
    return static_cast<std::uint32_t>(call.precision) * 16 +
           static_cast<std::uint32_t>(call.weighting);
  }
};

inline __device__ Terms& terms_of(const Combining& combining) {
  return combining.shared.terms[Group::number()];
}

inline __device__ unsigned lanes_below() {
  return (1U << lane()) - 1;
}

// ---- Heads and weights

inline __device__ void send_heads(const Combining& combining) {
  const Exchange& exchange = combining.exchange;
  for (std::uint32_t rank = blockIdx.x; rank < exchange.shape.ranks(); rank += gridDim.x) {
    if (thread_of_block() == 0 && !combining.is_gone(rank)) {
      send_parcel_to(
          exchange, rank,
          exchange.shape.head_at(combining.number(), static_cast<std::uint32_t>(exchange.me)),
          packed({0, combining.mode()}), combining.number());
    }
  }
}

// The block's threads have staged weights from `first` on for ranks of other nodes.
inline __device__ void post_weights(const Combining& combining,
                                    std::uint32_t first,
                                    std::uint32_t pairs) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  __syncthreads();
  const std::uint32_t rank = thread_of_block();
  if (rank < shape.ranks() && is_remote(exchange, rank) && !combining.is_gone(rank)) {
    post_run(exchange, rank,
             {Staging{shape}.weight_at(combining.number(), first),
              shape.weight_at(combining.number(), static_cast<std::uint32_t>(exchange.me), first),
              min(kThreads, pairs - first)},
             combining.number());
  }
}

inline __device__ void send_weights(const Combining& combining) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  const auto tokens = static_cast<std::uint32_t>(at<PlanHeader>(combining.call.plan, 0)->tokens);
  const std::uint32_t lanes = tokens * shape.topk;
  const std::uint32_t pairs = (lanes + 1) / 2;
  const auto me = static_cast<std::uint32_t>(exchange.me);
  const float* weights = combining.call.weights;
  for (std::uint32_t first = blockIdx.x * kThreads; first < pairs; first += gridDim.x * kThreads) {
    const std::uint32_t pair = first + thread_of_block();
    if (pair < pairs) {
      const std::uint32_t low = __float_as_uint(weights[2 * pair]);
      const std::uint32_t high = 2 * pair + 1 < lanes ? __float_as_uint(weights[2 * pair + 1]) : 0;
      const std::uint64_t data = low | std::uint64_t{high} << 32U;
      for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
        if (!combining.is_gone(rank) && !is_remote(exchange, rank)) {
          send_parcel(exchange.memory[rank] + shape.weight_at(combining.number(), me, pair), data,
                      combining.number());
        }
      }
      if (kBetweenNodes) {
        stage_parcel(exchange, Staging{shape}.weight_at(combining.number(), first), pair - first,
                     data, combining.number());
      }
    }
    if (kBetweenNodes) {
      post_weights(combining, first, pairs);
    }
  }
}

// One thread: the weight of a lane of `source`, which it was given only now; 0 if the source does not come.
inline __device__ float await_weight(const Combining& combining,
                                     std::uint32_t source,
                                     std::uint32_t index) {
  const Exchange& exchange = combining.exchange;
  const std::uint32_t pair = index / 2;
  const auto parcel_of = [&](std::uint32_t number) {
    return mine(exchange) + exchange.shape.weight_at(combining.number(), source, number);
  };
  std::uint64_t data = 0;
  const bool has_come = await_parcel(
      exchange, combining.entered, source, {parcel_of(pair), parcel_of(pair / kThreads * kThreads)},
      data, [&] { return has_refused(exchange, combining.number(), source); });
  return has_come ? __uint_as_float(static_cast<std::uint32_t>(data >> (index % 2 * 32))) : 0.0F;
}

// ---- Send

// A row that dispatch brought here.
struct Answered {
  std::uint32_t source;
  std::uint32_t slot;
  std::int32_t lane;  // token * topk + its first lane here, at the source
};

inline __device__ void note_answer(const Combining& combining,
                                   const Answered& row,
                                   std::size_t index,
                                   std::uint32_t copy) {
  const Exchange& exchange = combining.exchange;
  const std::uint32_t group = Group::number();
  if (is_remote(exchange, row.source)) {  // reduced: one for each row
    combining.shared.to[group][copy] =
        mine(exchange) +
        Staging{exchange.shape}.answer_at(combining.number(), row.source, row.slot);
    combining.shared.answered[group][copy] = nullptr;
    return;
  }
  std::byte* memory = exchange.memory[row.source];
  combining.shared.to[group][copy] = memory + exchange.shape.answer_at(combining.number(), index);
  combining.shared.answered[group][copy] =
      at<std::uint64_t>(memory, exchange.shape.answered_at(combining.number(), index));
}

// One warp: the experts' rows that belong to this row, lanes ascending.
inline __device__ void list_experts(const Combining& combining, const Answered& row) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  std::byte* plan = combining.call.plan;
  Terms& terms = terms_of(combining);
  const std::uint32_t lanes = is_by_rank(exchange) ? 1 : shape.topk;
  std::int32_t place = -1;
  float weight = 0;
  if (lane() < lanes) {
    place = at<std::int32_t>(plan, shape.plan().place_here_at(row.source, row.slot))[lane()];
    if (combining.weighs() && !combining.asks_for_weights()) {
      weight = at<float>(plan, shape.plan().weights_here_at(row.source, row.slot))[lane()];
    }
  }
  if (place >= 0 && combining.asks_for_weights()) {
    const std::uint32_t token = static_cast<std::uint32_t>(row.lane) / shape.topk;
    weight = await_weight(combining, row.source, token * shape.topk + lane());
  }
  __syncwarp();
  const unsigned same = __match_any_sync(kAllLanes, place);
  const bool is_first = __ffs(static_cast<int>(same)) - 1 == static_cast<int>(lane());
  const bool counts = place >= 0 && (is_first || (combining.is_reduced() && combining.weighs()));
  const unsigned counted = __ballot_sync(kAllLanes, counts);
  if (counts) {
    const auto index = static_cast<std::uint32_t>(__popc(counted & lanes_below()));
    terms.from[index] =
        combining.call.rows + static_cast<std::size_t>(place) * combining.call.stride;
    terms.weights[index] = weight;
    if (!combining.is_reduced()) {
      const std::size_t token = static_cast<std::uint32_t>(row.lane) / shape.topk;
      note_answer(combining, row, token * shape.topk + lane(), index);
    }
  }
  if (lane() == 0) {
    terms.count = static_cast<std::uint32_t>(__popc(counted));
    if (combining.is_reduced()) {
      note_answer(combining, row, static_cast<std::size_t>(row.lane), 0);
    }
  }
}

template <typename Type, Rows kRows, Travels kAs>
__device__ void send_answer(const Combining& combining,
                            const Answered& row,
                            PendingWords<kRows>& words) {
  const Exchange& exchange = combining.exchange;
  const std::uint32_t group = Group::number();
  if (Group::warp() == 0) {
    list_experts(combining, row);
  }
  Group::sync<kRows>();
  const Terms& terms = terms_of(combining);
  const std::uint32_t units = exchange.shape.output_bytes / kUnit;
  std::uint32_t answers = terms.count;
  if constexpr (kAs == Travels::Fp8) {
    if (terms.count > 0) {
      store_fp8_sum<Type>(terms, exchange.shape.hidden, combining.shared.to[group][0],
                          combining.weighs());
    }
    answers = min(terms.count, 1U);
  } else if (terms.count > 0 && combining.is_reduced() && !is_by_rank(exchange)) {
    store_sum<Type, kRows>(terms, units, combining.shared.to[group][0], combining.weighs());
    answers = 1;
  } else {
    for (std::uint32_t i = 0; i < terms.count; ++i) {
      copy_units<kRows>(terms.from[i], combining.shared.to[group][i], units);
    }
  }
  Group::sync<kRows>();
  const bool has_answer = Group::thread() < answers;
  std::uint64_t* word = has_answer ? combining.shared.answered[group][Group::thread()] : nullptr;
  if (kBetweenNodes && has_answer && word == nullptr) {
    const auto lane_there = static_cast<std::size_t>(row.lane);
    const std::size_t bytes = kAs == Travels::Fp8 ? weft::moe::Fp8Row{exchange.shape.hidden}.bytes()
                                                  : exchange.shape.output_bytes;
    post(exchange,
         {row.source, combining.shared.to[group][0], bytes,
          exchange.shape.answer_at(combining.number(), lane_there),
          exchange.shape.answered_at(combining.number(), lane_there)},
         combining.number());
  }
  words.add(word, combining.number());
}

// All threads of the grid.
template <typename Type, Rows kRows, Travels kAs>
__device__ void send_answers(const Combining& combining) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  std::byte* plan = combining.call.plan;
  send_heads(combining);
  if (combining.asks_for_weights()) {
    send_weights(combining);
  }
  const auto* rows = at<std::int32_t>(plan, shape.plan().rows_here_at());
  std::int32_t most = 0;
  for (std::uint32_t source = 0; source < shape.ranks(); ++source) {
    most = max(most, rows[source]);
  }
  const std::uint32_t all = static_cast<std::uint32_t>(most) * shape.ranks();
  PendingWords<kRows> words;
  for (std::uint32_t i = Group::index(); i < all; i += Group::count()) {
    const std::uint32_t slot = i / shape.ranks();
    const std::uint32_t source = i - slot * shape.ranks();
    if (slot >= static_cast<std::uint32_t>(rows[source]) || combining.is_gone(source)) {
      continue;
    }
    const Answered row{source, slot,
                       *at<std::int32_t>(plan, shape.plan().lane_here_at(source, slot))};
    send_answer<Type, kRows, kAs>(combining, row, words);
  }
  words.store(combining.number());
}

// ---- Receive

// One thread: whether the answer at `index`, from `rank`, is here.
inline __device__ bool await_answer(const Combining& combining,
                                    std::uint32_t rank,
                                    std::size_t index) {
  const Exchange& exchange = combining.exchange;
  const auto* word =
      at<std::uint64_t>(mine(exchange), exchange.shape.answered_at(combining.number(), index));
  const bool has_come = wait_for(
      exchange, combining.entered, rank,
      [&] { return device::load_relaxed(word) == combining.number(); },
      [&] { return has_refused(exchange, combining.number(), rank); });
  // SYNC moe-word (pairs with src/gpu/moe/exchange.cuh): what the group reads behind its barrier.
  device::fence_acquire();
  return has_come;
}

// One warp: the answers of a token in the order of the sum, which are waited for. Precision lanes: in the order of lanes,
// null where there is none.
inline __device__ void list_answers(const Combining& combining, std::uint32_t token) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  Terms& terms = terms_of(combining);
  const std::size_t index = std::size_t{token} * shape.topk + lane();
  std::int32_t id = -1;
  float weight = 0;
  if (lane() < shape.topk) {
    id = at<std::int32_t>(combining.call.plan, shape.plan().ids_at())[index];
    if (combining.weighs() && !combining.is_reduced()) {
      weight = combining.call.weighting == WEFT_MOE_WEIGHTS_GIVEN
                   ? combining.call.weights[index]
                   : at<float>(combining.call.plan, shape.plan().weights_at())[index];
    }
  }
  const std::int32_t rank = id < 0 ? -1 : shape.map.rank_of(id);
  const unsigned same = __match_any_sync(kAllLanes, combining.is_reduced() ? rank : id);
  const auto first = static_cast<std::uint32_t>(__ffs(static_cast<int>(same)) - 1);
  const bool is_first = id >= 0 && first == lane();
  bool has_come = false;
  if (is_first && !combining.is_gone(static_cast<std::uint32_t>(rank))) {
    has_come = await_answer(combining, static_cast<std::uint32_t>(rank), index);
  }
  __syncwarp();
  has_come = __shfl_sync(kAllLanes, has_come ? 1 : 0, static_cast<int>(first)) != 0 && id >= 0;
  const bool all_lanes = combining.call.precision == WEFT_MOE_LANES;
  const bool counts = has_come && (is_first || (!combining.is_reduced() && combining.weighs()));
  std::uint32_t position = lane();
  if (!all_lanes) {
    position = 0;
    for (int other = 0; other < static_cast<int>(shape.topk); ++other) {
      const bool other_counts = __shfl_sync(kAllLanes, counts ? 1 : 0, other) != 0;
      const std::int32_t other_rank = __shfl_sync(kAllLanes, rank, other);
      const bool is_earlier =
          combining.is_reduced() ? other_rank < rank : other < static_cast<int>(lane());
      position += other_counts && is_earlier ? 1 : 0;
    }
  }
  const std::byte* answer =
      mine(exchange) + shape.answer_at(combining.number(), std::size_t{token} * shape.topk + first);
  if (all_lanes) {
    terms.from[lane()] = has_come ? answer : nullptr;
  } else if (counts) {
    terms.from[position] = answer;
    terms.weights[position] = weight;
  }
  const unsigned counted = __ballot_sync(kAllLanes, counts);
  if (lane() == 0) {
    terms.count = static_cast<std::uint32_t>(__popc(counted));
  }
}

// Partial sums of ranks are added as they are; so are rows without weights.
template <typename Type, Rows kRows, Travels kAs>
__device__ void store_token(const Combining& combining, std::uint32_t token) {
  const Shape& shape = combining.exchange.shape;
  const std::uint32_t units = shape.output_bytes / kUnit;
  if constexpr (kAs == Travels::Fp8) {
    store_sum_of_fp8<Type>(terms_of(combining), shape.hidden,
                           combining.call.out + std::size_t{token} * shape.output_bytes);
    return;
  }
  if (combining.call.precision != WEFT_MOE_LANES) {
    store_sum<Type, kRows>(terms_of(combining), units,
                           combining.call.out + std::size_t{token} * shape.output_bytes,
                           combining.weighs() && !combining.is_reduced());
    return;
  }
  for (std::uint32_t i = 0; i < shape.topk; ++i) {
    std::byte* to = combining.call.out + (std::size_t{token} * shape.topk + i) * shape.output_bytes;
    const std::byte* from = terms_of(combining).from[i];
    if (from != nullptr) {
      copy_units<kRows>(from, to, units);
    } else {
      for_units(units, [&](std::uint32_t unit) {
        device::store_data(reinterpret_cast<Vector16*>(to) + unit, {});
      });
    }
  }
}

// One block: all ranks have begun this call, so they have left the one before the last.
inline __device__ void await_heads(const Combining& combining) {
  const Exchange& exchange = combining.exchange;
  const std::uint32_t rank = thread_of_block();
  if (rank >= exchange.shape.ranks() || combining.is_gone(rank)) {
    return;
  }
  const std::byte* from = mine(exchange) + exchange.shape.head_at(combining.number(), rank);
  std::uint64_t data = 0;
  const bool has_come = wait_for(
      exchange, combining.entered, rank, [&] { return has_parcel(from, combining.number(), data); },
      never_gives_up);
  if (has_come && unpacked(data).mode != combining.mode()) {
    record_refusal(exchange, WEFT_MOE_COMBINE, combining.number(), rank, unpacked(data).mode);
  }
}

// All threads of the grid.
template <typename Type, Rows kRows, Travels kAs>
__device__ void receive_answers(const Combining& combining) {
  const Exchange& exchange = combining.exchange;
  const auto tokens = static_cast<std::uint32_t>(at<PlanHeader>(combining.call.plan, 0)->tokens);
  for (std::uint32_t token = Group::index_of_receiver(0); token < tokens; token += Group::count()) {
    if (Group::warp() == 0) {
      list_answers(combining, token);
    }
    Group::sync<kRows>();
    store_token<Type, kRows, kAs>(combining, token);
    Group::sync<kRows>();
  }
  if (blockIdx.x == 0) {
    await_heads(combining);
  }
  finish(exchange);
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
