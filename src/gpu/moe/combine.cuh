// One combine. Send: for each row that a dispatch brought here, a group sums the experts' rows in the order of lanes (or
// sends each), and stores the answer where the source looks for it: at token * topk + the first lane that came here, so
// nobody has to be told a place. Receive: for each token a group waits for its answers and sums them, ranks ascending, or
// lanes ascending. Outputs in place are not sent: each rank reads those of its tokens where they are (pulled_answers.cuh).
//
// Weights that come only now go to all ranks first, as parcels; the experts' ranks wait for those of a row when they sum it.
#pragma once

#include "src/gpu/moe/bulk_sums.cuh"
#include "src/gpu/moe/fp8_sums.cuh"
#include "src/gpu/moe/polled.cuh"
#include "src/gpu/moe/remote.cuh"
#include "src/gpu/moe/sums.cuh"
#include "src/gpu/moe/words.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// The answers that a group adds up, by the number of the term, where they are polled. Those of this rank that stay where they are
// (adds_in_place) are not.
struct PolledTerms {
  std::uint32_t polled;   // as bits
  std::uint32_t cleared;  // of those, the last with their answer: several lanes may name an expert
  std::uint32_t ranks[kTopkMax];
  const std::uint64_t* words[kTopkMax];
};

struct CombineMemory {
  Terms terms[kGroupsMax];
  std::byte* to[kGroupsMax][kTopkMax];
  std::uint64_t* answered[kGroupsMax][kTopkMax];  // null: the answer is for another node
  PolledTerms polled[kGroupsOfFew];
  std::uint32_t tokens;                   // of this rank
  std::uint32_t most_rows;                // that came from one
  std::uint32_t drawn;                    // tokens that the block's warps took, where rows are many
  std::uint32_t first_output[kRanksMax];  // in place: of each rank's, for this one, or kNoOutputs
};

// Each warp's, where rows are many.
using CombineBelt = BeltMemory<4, 3328>;

// How an answer is known to be here: by its word; by its own bytes (polled_answers.cuh); or it is never sent (pulled_answers.cuh).
enum class Known { ByWord, Polled, InPlace };

// Rank layouts and expert layouts have kernels of their own, and so have sums that travel as fp8 and the ways to know of an answer:
// they are shorter, and need fewer registers, than one for all.
template <bool kIsByRank, Travels kTravels, Known kIsKnown = Known::ByWord>
struct Way {
  static constexpr bool kByRank = kIsByRank;
  static constexpr Travels kAs = kTravels;
  static constexpr bool kInPlace = kIsKnown == Known::InPlace;
  static constexpr bool kPolls = kIsKnown == Known::Polled;
};

// In the mode of a combine, beside its precision and weighting.
inline constexpr std::uint32_t kModeInPlace = 1U << 10U;

template <typename Way>
struct Combining {
  const Exchange& exchange;
  const Combine& call;
  CombineMemory& shared;
  Call entered;
  CombineBelt* belts;  // of the block's warps, where rows are many
  Pieces pieces;

  __device__ Belt<CombineBelt> belt() const { return Belt<CombineBelt>(belts[Group::number()]); }

  __device__ std::uint64_t number() const { return entered.number; }

  // Rows by rank come reduced and weighted (src/moe/gpu_exchange.cpp).
  __device__ bool weighs() const { return !Way::kByRank && call.weighting != WEFT_MOE_UNWEIGHTED; }

  // The experts' rank sums before it sends.
  __device__ bool is_reduced() const {
    return Way::kByRank || Way::kAs == Travels::Fp8 || call.precision == WEFT_MOE_REDUCED;
  }

  // Every row comes back, and stays apart.
  __device__ bool keeps_lanes() const { return !Way::kByRank && call.precision == WEFT_MOE_LANES; }

  __device__ bool asks_for_weights() const {
    return is_reduced() && call.weighting == WEFT_MOE_WEIGHTS_GIVEN;
  }

  __device__ bool is_gone(std::uint32_t rank) const { return (entered.missing >> rank & 1) != 0; }

  // Rows by rank that this rank sent to itself are added where they lie. A send alone may not count on them to stay.
  __device__ bool adds_in_place(std::uint32_t rank) const {
    return Way::kByRank && !Way::kInPlace && rank == static_cast<std::uint32_t>(exchange.me) &&
           call.phases.sends && call.phases.receives && Way::kAs == Travels::Rounded;
  }

  // Ranks whose rows are answered, one after the other: without this one, if its are not sent.
  __device__ std::uint32_t sources() const {
    return exchange.shape.ranks() -
           (adds_in_place(static_cast<std::uint32_t>(exchange.me)) ? 1 : 0);
  }

  __device__ std::uint32_t source(std::uint32_t index) const {
    const auto me = static_cast<std::uint32_t>(exchange.me);
    return index + (adds_in_place(me) && index >= me ? 1 : 0);
  }

  __device__ std::uint32_t mode() const {
    return static_cast<std::uint32_t>(call.precision) * 16 +
           static_cast<std::uint32_t>(call.weighting) + (Way::kInPlace ? kModeInPlace : 0);
  }

  // Whether `rank` makes another combine, or refuses: what this one waits for may never come.
  __device__ bool differs(std::uint32_t rank) const {
    std::uint64_t data = 0;
    return has_parcel(mine(exchange) + exchange.shape.head_at(number(), rank), number(), data) &&
           unpacked(data).mode != mode();
  }
};

template <typename Way>
__device__ Terms& terms_of(const Combining<Way>& combining) {
  return combining.shared.terms[Group::number()];
}

// In place: whether a thread loads several units of each term at once, as loads take long from other GPUs. With many on their way the
// link is slower: 32 tokens of four ranks take 1.2 us less one by one, 8 take 0.5 us more.
template <typename Way>
__device__ bool loads_together(const Combining<Way>& combining) {
  constexpr std::uint32_t kMostRows = 64;
  return combining.shared.tokens *
             min(combining.exchange.shape.ranks(), combining.exchange.shape.topk) <=
         kMostRows;
}

// A group: the sum of its terms. In the order of the terms, with the same bits in both ways.
template <typename Type, Rows kRows, typename Way>
__device__ void store_sum_of_terms(const Combining<Way>& combining, std::byte* to, bool weighs) {
  const Terms& terms = terms_of(combining);
  const std::uint32_t units = combining.exchange.shape.output_bytes / kUnit;
  if constexpr (kRows == Rows::Many) {
    const bool fits = terms.count > 0 && terms.count <= kBulkTermsMax;
    if (fits && !Way::kInPlace && lane() == 0) {
      fence_global_for_bulk();
    }
    const bool is_done =
        fits && (weighs ? store_sum_by_bulk<true>(combining.belt(), terms, units, to)
                        : store_sum_by_bulk<false>(combining.belt(), terms, units, to));
    if (!is_done) {
      store_other_sum<Type, kRows>(terms, units, to, weighs);
    }
  } else if constexpr (Way::kInPlace) {
    store_sum_by<Type, kRows, 2, 4>(terms, units, to, weighs, Plainly{}, loads_together(combining));
  } else {
    store_sum<Type>(terms, units, to, weighs);
  }
}

inline __device__ unsigned lanes_below() {
  return (1U << lane()) - 1;
}

// ---- Heads and weights

// One thread: the output with which those for `rank` begin.
template <typename Way>
__device__ std::int32_t first_output_for(const Combining<Way>& combining, std::uint32_t rank) {
  const Shape& shape = combining.exchange.shape;
  if (combining.exchange.layout == WEFT_MOE_RANK_MAJOR) {
    return static_cast<std::int32_t>(combining.call.first_output + rank * shape.max_tokens);
  }
  const auto* rows = at<std::int32_t>(combining.call.plan, shape.plan().rows_here_at());
  auto first = static_cast<std::int32_t>(combining.call.first_output);
  for (std::uint32_t source = 0; source < rank; ++source) {
    first += rows[source];
  }
  return first;
}

// All threads of the grid, before the block enters: the fence takes longer than that, and others wait for heads. Where answers are sent,
// it stands in send_heads, as what a block sends waits for its entry.
inline __device__ void release_outputs(const Exchange& exchange, const Combine& call) {
  if (call.phases.sends && blockIdx.x < exchange.shape.ranks() && thread_of_block() == 0) {
    // SYNC moe-outputs: what kernels before this one wrote there, and put back.
    device::fence_release();
  }
}

template <typename Way>
__device__ void send_heads(const Combining<Way>& combining) {
  const Exchange& exchange = combining.exchange;
  for (std::uint32_t rank = blockIdx.x; rank < exchange.shape.ranks(); rank += gridDim.x) {
    if (thread_of_block() == 0 && !combining.is_gone(rank)) {
      Header head{0, combining.mode()};
      if constexpr (Way::kInPlace) {
        head.rows = first_output_for(combining, rank);  // behind release_outputs
      } else if (exchange.shape.polls) {
        // SYNC moe-polled-answers: what others store there in later calls.
        device::fence_release();
      }
      send_parcel_to(
          exchange, rank,
          exchange.shape.head_at(combining.number(), static_cast<std::uint32_t>(exchange.me)),
          packed(head), combining.number());
    }
  }
}

// The block's threads have staged weights from `first` on for ranks of other nodes.
template <typename Way>
__device__ void post_weights(const Combining<Way>& combining,
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

// One thread: waits for the head of `rank`. False if it does not come, or makes another combine, which the last block records.
template <typename Way>
__device__ bool await_head(const Combining<Way>& combining, std::uint32_t rank, Header& head) {
  const Exchange& exchange = combining.exchange;
  const std::byte* from = mine(exchange) + exchange.shape.head_at(combining.number(), rank);
  std::uint64_t data = 0;
  const bool has_come = wait_for(
      exchange, combining.entered, rank, [&] { return has_parcel(from, combining.number(), data); },
      never_gives_up);
  head = unpacked(data);
  if constexpr (Way::kInPlace) {
    // SYNC moe-outputs: outputs that the block reads behind its barrier; and as below.
    device::fence_acquire();
  } else {
    // SYNC moe-polled-answers: where later kernels store is clear.
    device::fence_acquire();
  }
  if (has_come && head.mode != combining.mode() && Group::is_of_last_block()) {
    record_refusal(exchange, WEFT_MOE_COMBINE, combining.number(), rank, head.mode);
  }
  return has_come && head.mode == combining.mode();
}

template <typename Way>
__device__ void send_weights(const Combining<Way>& combining) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t lanes = combining.shared.tokens * shape.topk;
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
template <typename Way>
__device__ float await_weight(const Combining<Way>& combining,
                              std::uint32_t source,
                              std::uint32_t index) {
  const Exchange& exchange = combining.exchange;
  const std::uint32_t pair = index / 2;
  const auto parcel_of = [&](std::uint32_t number) {
    return mine(exchange) + exchange.shape.weight_at(combining.number(), source, number);
  };
  std::uint64_t data = 0;
  const bool has_come = await_parcel(exchange, combining.entered, source,
                                     {parcel_of(pair), parcel_of(pair / kThreads * kThreads)}, data,
                                     [&] { return combining.differs(source); });
  return has_come ? __uint_as_float(static_cast<std::uint32_t>(data >> (index % 2 * 32))) : 0.0F;
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
