// Partial sums of a combine, before they are sent: what is requested of which rank, and those for
// other nodes, which ranks of a node make together. 600 lines, as the partial sums of a node are
// made of the parts that the first half describes.
//
// Device code, by all threads of the grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "moe/src/gpu/kernels/nodes.cuh"
#include "moe/src/gpu/kernels/polled.cuh"
#include "moe/src/gpu/kernels/sums.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- A combine as its kernel began it
//
// A partial sum is the sum of a token's expert outputs on one rank (or, with precision exact or
// lanes, one of them), which that rank returns to the token's source.
//
// One combine. Send: for each row that a dispatch brought here, a group sums the experts' rows in
// the order of lanes (or sends each), and stores the partial sum where the source looks for it: at
// token * topk + the first lane that came here, so nobody has to be told a place. Receive: for each
// token a group waits for its partial sums and adds them, ranks ascending, or lanes ascending.
// Outputs in place are not sent: each rank reads those of its tokens where they are
// (store_sums.cuh).
//
// Weights that come only now go to all ranks first, as parcels; the experts' ranks wait for those
// of a row when they sum it.

// The partial sums that a group adds up, by the number of the term, where they are polled. Those of
// this rank that stay where they are (adds_in_place) are not.
struct PolledTerms {
  std::uint32_t polled;  // as bits
  std::uint32_t
      cleared;  // of those, the last with their partial sum: several lanes may name an expert
  std::uint32_t ranks[kTopkMax];
  const std::uint64_t* words[kTopkMax];
};

struct CombineMemory {
  Terms terms[kGroupsMax];
  std::byte* to[kGroupsMax][kTopkMax];
  std::uint64_t*
      arrived[kGroupsMax]
             [kTopkMax];  // the words that say so; null: the partial sum is for another node
  PolledTerms polled[kGroupsOfFew];
  std::uint32_t tokens;                   // of this rank
  std::uint32_t most_rows;                // that came from one
  std::uint32_t drawn;                    // tokens that the block's warps took, where rows are many
  std::uint32_t first_output[kRanksMax];  // in place: of each rank's, for this one, or kNoOutputs
};

// Each warp's, where rows are many.
using CombinePipeline = BulkPipelineMemory<4, 3328>;

// How a partial sum is known to be here: by its word; by its own bytes (store_sums.cuh); or it is
// never sent (store_sums.cuh).
enum class Known { ByWord, Polled, InPlace };

// Rank layouts and expert layouts have kernels of their own, and so have sums that travel as fp8
// and the ways to know of a partial sum: they are shorter, and need fewer registers, than one for
// all.
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
  const KernelArguments& exchange;
  const Combine& call;
  CombineMemory& shared;
  Call entered;
  CombinePipeline* pipelines;  // of the block's warps, where rows are many
  Pieces pieces;

  __device__ BulkPipeline<CombinePipeline> pipeline() const {
    return BulkPipeline<CombinePipeline>(pipelines[Group::number()]);
  }

  __device__ std::uint64_t number() const { return entered.number; }

  // Rows by rank come reduced and weighted (moe/src/gpu/gpu_exchange.cpp).
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

  // Rows by rank that this rank sent to itself are added where they lie. A send alone may not count
  // on them to stay.
  __device__ bool adds_in_place(std::uint32_t rank) const {
    return Way::kByRank && !Way::kInPlace && rank == static_cast<std::uint32_t>(exchange.me) &&
           call.phases.sends && call.phases.receives && Way::kAs == Travels::Rounded;
  }

  // Ranks to which partial sums are sent, one after the other: without this one, if its are not
  // sent.
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
    return has_parcel(mine(exchange) + exchange.shape.combine_header_at(number(), rank), number(),
                      data) &&
           unpacked(data).mode != mode();
  }
};

template <typename Way>
__device__ Terms& terms_of(const Combining<Way>& combining) {
  return combining.shared.terms[Group::number()];
}

// In place: whether a thread loads several units of each term at once, as loads take long from
// other GPUs. With many on their way the link is slower: 32 tokens of four ranks take 1.2 us less
// one by one, 8 take 0.5 us more.
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
  if constexpr (kRows == Rows::WarpPerRow) {
    const bool fits = terms.count > 0 && terms.count <= kBulkTermsMax;
    if (fits && !Way::kInPlace && lane() == 0) {
      fence_global_for_bulk();
    }
    const bool is_done =
        fits && (weighs ? store_sum_by_bulk<true>(combining.pipeline(), terms, units, to)
                        : store_sum_by_bulk<false>(combining.pipeline(), terms, units, to));
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

// ---- Combine headers and weights

// One thread: the output with which those for `rank` begin.
template <typename Way>
__device__ std::int32_t first_output_for(const Combining<Way>& combining, std::uint32_t rank) {
  const Shape& shape = combining.exchange.shape;
  if (is_in_place(combining.exchange.layout)) {
    return static_cast<std::int32_t>(combining.call.first_output + rank * shape.max_tokens);
  }
  const auto* rows = at<std::int32_t>(combining.call.plan, shape.plan().rows_here_at());
  auto first = static_cast<std::int32_t>(combining.call.first_output);
  for (std::uint32_t source = 0; source < rank; ++source) {
    first += rows[source];
  }
  return first;
}

// All threads of the grid, before the block enters: the fence takes longer than that, and others
// wait for combine headers. Where partial sums are sent, it stands in send_combine_headers, as what
// a block sends waits for its entry.
inline __device__ void release_outputs(const KernelArguments& exchange, const Combine& call) {
  if (call.phases.sends && blockIdx.x < exchange.shape.ranks() && thread_of_block() == 0) {
    // SYNC moe-outputs: what kernels before this one wrote there, and put back.
    device::fence_release();
  }
}

template <typename Way>
__device__ void send_combine_headers(const Combining<Way>& combining) {
  const KernelArguments& exchange = combining.exchange;
  for (std::uint32_t rank = blockIdx.x; rank < exchange.shape.ranks(); rank += gridDim.x) {
    if (thread_of_block() == 0 && !combining.is_gone(rank)) {
      Header header{0, combining.mode()};
      if constexpr (Way::kInPlace) {
        header.rows = first_output_for(combining, rank);  // behind release_outputs
      } else if (exchange.shape.polls) {
        // SYNC moe-polled-partial-sums: what others store there in later calls.
        device::fence_release();
      }
      send_parcel_to(exchange, rank,
                     exchange.shape.combine_header_at(combining.number(),
                                                      static_cast<std::uint32_t>(exchange.me)),
                     packed(header), combining.number());
    }
  }
}

// The block's threads have staged weights from `first` on for ranks of other nodes.
template <typename Way>
__device__ void post_weights(const Combining<Way>& combining,
                             std::uint32_t first,
                             std::uint32_t pairs) {
  const KernelArguments& exchange = combining.exchange;
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

// One thread: waits for the combine header of `rank`. False if it does not come, or makes another
// combine, which the last block records.
template <typename Way>
__device__ bool await_combine_header(const Combining<Way>& combining,
                                     std::uint32_t rank,
                                     Header& header) {
  const KernelArguments& exchange = combining.exchange;
  const std::byte* from =
      mine(exchange) + exchange.shape.combine_header_at(combining.number(), rank);
  std::uint64_t data = 0;
  const bool has_come = wait_for(
      exchange, combining.entered, rank, [&] { return has_parcel(from, combining.number(), data); },
      never_gives_up);
  header = unpacked(data);
  if constexpr (Way::kInPlace) {
    // SYNC moe-outputs: outputs that the block reads behind its barrier; and as below.
    device::fence_acquire();
  } else {
    // SYNC moe-polled-partial-sums: where later kernels store is clear.
    device::fence_acquire();
  }
  if (has_come && header.mode != combining.mode() && Group::is_of_last_block()) {
    record_refusal(exchange, WEFT_MOE_COMBINE, combining.number(), rank, header.mode);
  }
  return has_come && header.mode == combining.mode();
}

template <typename Way>
__device__ void send_weights(const Combining<Way>& combining) {
  const KernelArguments& exchange = combining.exchange;
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

// One thread: the weight of a lane of `source`, which it was given only now; 0 if the source does
// not come.
template <typename Way>
__device__ float await_weight(const Combining<Way>& combining,
                              std::uint32_t source,
                              std::uint32_t index) {
  const KernelArguments& exchange = combining.exchange;
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

// ---- Partial sums for other nodes
//
// All that a rank gets are staged slot by slot and put as one message, because slots are the
// same on both sides. The message has one word, which the source looks at for each of its tokens.
//
// Device code: whoever stages the last partial sum for a rank puts the message, as for the rows of
// a dispatch (nodes.cuh).

// Rows for ranks of other nodes travel as they are summed, so those of fp8 are shorter.
template <typename Way>
__device__ std::size_t partial_sum_bytes(const Combining<Way>& combining) {
  const Shape& shape = combining.exchange.shape;
  return Way::kAs == Travels::Fp8 ? weft::moe::Fp8Row{shape.hidden}.bytes() : shape.output_bytes;
}

// Where the partial sum of `rank`, on another node, of this rank's row in `slot` there arrives.
template <typename Way>
const __device__ std::byte* far_partial_sum(const Combining<Way>& combining,
                                            std::uint32_t rank,
                                            std::int32_t slot) {
  const KernelArguments& exchange = combining.exchange;
  return mine(exchange) +
         Staging{exchange.shape}.far_partial_sum_at(combining.number(),
                                                    exchange.place_there[rank]) +
         static_cast<std::size_t>(slot) * partial_sum_bytes(combining);
}

// The word of all partial sums of `rank`, which is on another node.
template <typename Way>
const __device__ std::uint64_t* far_partial_sums_arrived(const Combining<Way>& combining,
                                                         std::uint32_t rank) {
  const KernelArguments& exchange = combining.exchange;
  return at<std::uint64_t>(mine(exchange), Staging{exchange.shape}.far_partial_sums_arrived_at(
                                               combining.number(), rank));
}

template <typename Way>
__device__ std::byte* staged_partial_sum(const Combining<Way>& combining,
                                         std::uint32_t source,
                                         std::uint32_t slot) {
  const KernelArguments& exchange = combining.exchange;
  return mine(exchange) +
         Staging{exchange.shape}.partial_sum_at(combining.number(), exchange.place_here[source]) +
         slot * partial_sum_bytes(combining);
}

template <typename Way>
__device__ std::uint32_t rows_of(const Combining<Way>& combining, std::uint32_t source) {
  return static_cast<std::uint32_t>(at<std::int32_t>(
      combining.call.plan, combining.exchange.shape.plan().rows_here_at())[source]);
}

// One thread, which has acquired what was staged.
template <typename Way>
__device__ void put_partial_sums(const Combining<Way>& combining, std::uint32_t source) {
  const KernelArguments& exchange = combining.exchange;
  const Staging staging{exchange.shape};
  const std::uint64_t number = combining.number();
  const auto me = static_cast<std::uint32_t>(exchange.me);
  post(exchange,
       {source, staged_partial_sum(combining, source, 0),
        rows_of(combining, source) * partial_sum_bytes(combining),
        staging.far_partial_sum_at(number, exchange.place_there[me]),
        staging.far_partial_sums_arrived_at(number, me)},
       number);
}

// One thread, behind a barrier of those that staged: `count` more rows of `source` are done with.
template <typename Way>
__device__ void count_partial_sums(const Combining<Way>& combining,
                                   std::uint32_t source,
                                   std::uint32_t count) {
  State& state = *combining.exchange.state;
  // SYNC moe-staged: the partial sum before it is counted.
  device::fence_release();
  if (atomicAdd(&state.staged_partial_sums[source], count) + count != kWhole) {
    return;
  }
  // SYNC moe-staged: all of them are read by the put.
  device::fence_acquire();
  device::store_relaxed(&state.staged_partial_sums[source], 0);
  put_partial_sums(combining, source);
}

// Whether this rank sends partial sums to `source`, which is on another node, alone. With a row for
// each node its relay sends those of all.
template <typename Way>
__device__ bool sends_partial_sums_alone(const Combining<Way>& combining, std::uint32_t source) {
  return kBetweenNodes && !combining.exchange.by_node && is_remote(combining.exchange, source) &&
         !combining.is_gone(source);
}

// A group: the row `slot` of `source`, if there is one, is done with.
template <typename Way>
__device__ void end_far_partial_sum(const Combining<Way>& combining,
                                    std::uint32_t source,
                                    std::uint32_t slot) {
  if (sends_partial_sums_alone(combining, source) && Group::thread() == 0 &&
      slot < rows_of(combining, source)) {
    count_partial_sums(combining, source, 1);
  }
}

// All threads of the grid: how many rows each rank of another node waits for, of those with
// sends_to(rank).
template <typename Way, typename SendsTo>
__device__ void begin_far_partial_sums(const Combining<Way>& combining, SendsTo&& sends_to) {
  if constexpr (kBetweenNodes) {
    const std::uint32_t ranks = thread_of_block() == 0 ? combining.exchange.shape.ranks() : 0;
    for (std::uint32_t source = blockIdx.x; source < ranks; source += gridDim.x) {
      const std::uint32_t rows = rows_of(combining, source);
      if (rows > 0 && sends_to(source)) {
        count_partial_sums(combining, source, kWhole - rows);
      }
    }
  }
}

// ---- Sums of a node
//
// Partial sums of a node, with a row for each node: one row comes back for each token, the sum over
// all ranks of the node. Each rank stores its part, a sum that is not rounded, in the memory of the
// relay, to which the rows came; that one adds the parts, ranks ascending, and puts what it makes.
//
// Which ranks have a part, all of them know from the plan, because each has read the ids of the
// whole row. The relay waits for parts in the receive of a combine, when it has sent its own; so
// ranks of a node wait for each other's sends alone.
//
// Device code: a group for each row; the first warp reads the plan.

// Whether the node for which `relay` sends partial sums may not have any, as a rank there did not
// come.
inline __device__ bool lacks_rank(const KernelArguments& exchange, std::uint32_t relay) {
  bool lacks = false;
  for (std::uint32_t rank = 0; exchange.by_node && rank < exchange.shape.ranks(); ++rank) {
    lacks = lacks || (exchange.relay_there[rank] == relay && is_missing(exchange, rank));
  }
  return lacks;
}

// One thread: whether what `word` tells of, from `rank`, is here.
template <typename Way>
__device__ bool await_word(const Combining<Way>& combining,
                           std::uint32_t rank,
                           const std::uint64_t* word) {
  const KernelArguments& exchange = combining.exchange;
  const bool has_come = wait_for(
      exchange, combining.entered, rank,
      [&] { return device::load_relaxed(word) == combining.number(); },
      [&] { return combining.differs(rank) || (kBetweenNodes && lacks_rank(exchange, rank)); });
  // SYNC moe-word (pairs with moe/src/gpu/kernels/copy_engine.cuh): what the group reads behind its
  // barrier.
  device::fence_acquire();
  return has_come;
}

// One warp: the ranks of this node that have a part of the partial sum of a row, as bits. Each
// thread has the place of a lane.
inline __device__ std::uint64_t ranks_with_parts(const KernelArguments& exchange,
                                                 std::int32_t place) {
  const std::int32_t rank = place >= 0 ? exchange.me : mate_at(place);  // below 0: none
  const std::uint64_t bit = rank >= 0 ? std::uint64_t{1} << rank : 0;
  const unsigned low = __reduce_or_sync(kAllLanes, static_cast<unsigned>(bit));
  const unsigned high = __reduce_or_sync(kAllLanes, static_cast<unsigned>(bit >> 32U));
  return low | std::uint64_t{high} << 32U;
}

// One warp: where this rank's part of a partial sum goes.
template <typename Way>
__device__ void note_part(const Combining<Way>& combining,
                          std::uint32_t source,
                          std::uint32_t slot,
                          std::int32_t place) {
  const KernelArguments& exchange = combining.exchange;
  const std::uint64_t ranks = ranks_with_parts(exchange, place);
  const std::uint64_t lower = ranks & ((std::uint64_t{1} << exchange.me) - 1);
  const auto part = static_cast<std::uint32_t>(__popcll(lower));
  if (lane() == 0) {
    const Staging staging{exchange.shape};
    std::byte* memory = exchange.memory[exchange.relay_here[source]];
    const std::uint32_t at_relay = exchange.place_here[source];
    const std::uint32_t group = Group::number();
    combining.shared.to[group][0] =
        memory + staging.part_at(combining.number(), at_relay, slot, part);
    combining.shared.arrived[group][0] =
        at<std::uint64_t>(memory, staging.put_part_at(combining.number(), at_relay, slot, part));
  }
}

// A group: the sum of its terms, in their order.
template <typename Type>
__device__ __noinline__ void store_part(const Terms& terms,
                                        std::uint32_t units,
                                        std::byte* to,
                                        bool weighs) {
  for_units(terms.count > 0 ? units : 0, [&](std::uint32_t unit) {
    UnitSum<Type> sum;
    for (std::uint32_t i = 0; i < terms.count; ++i) {
      const auto* from = reinterpret_cast<const Vector16*>(terms.from[i]) + unit;
      sum.add_unit(device::load_shared(from), weighs, terms.weights[i]);
    }
    sum.store_sums(reinterpret_cast<Vector16*>(to) + unit * UnitSum<Type>::kUnitsOfSums);
  });
}

// ---- The relay

template <typename Way>
__device__ bool is_relay_for(const Combining<Way>& combining, std::uint32_t source) {
  const KernelArguments& exchange = combining.exchange;
  return shares_rows(exchange, source) && exchange.relay_here[source] == exchange.me &&
         !combining.is_gone(source);
}

// One warp: the parts of the partial sum of a row, which are waited for. Those that do not come are
// left out: then the call fails.
template <typename Way>
__device__ void list_parts(const Combining<Way>& combining,
                           std::uint32_t source,
                           std::uint32_t slot) {
  const KernelArguments& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  const Staging staging{shape};
  Terms& terms = terms_of(combining);
  const auto* places =
      at<std::int32_t>(combining.call.plan, shape.plan().place_here_at(source, slot));
  std::uint64_t ranks = ranks_with_parts(exchange, lane() < shape.topk ? places[lane()] : -1);
  const bool has_part = static_cast<int>(lane()) < __popcll(ranks);
  bool has_come = false;
  if (has_part) {
    for (std::uint32_t lower = 0; lower < lane(); ++lower) {
      ranks &= ranks - 1;
    }
    const auto rank = static_cast<std::uint32_t>(__ffsll(static_cast<long long>(ranks)) - 1);
    const auto* word = at<std::uint64_t>(
        mine(exchange),
        staging.put_part_at(combining.number(), exchange.place_here[source], slot, lane()));
    has_come = await_word(combining, rank, word);
  }
  __syncwarp();
  const unsigned come = __ballot_sync(kAllLanes, has_come);
  if (has_come) {
    terms.from[__popc(come & lanes_below())] =
        mine(exchange) +
        staging.part_at(combining.number(), exchange.place_here[source], slot, lane());
  }
  if (lane() == 0) {
    terms.count = static_cast<std::uint32_t>(__popc(come));
  }
}

// A group: the sum of the parts, as it travels.
template <typename Type, typename Way>
__device__ __noinline__ void store_sum_of_parts(const Combining<Way>& combining, std::byte* to) {
  const Terms& terms = terms_of(combining);
  const Shape& shape = combining.exchange.shape;
  if constexpr (Way::kAs == Travels::Fp8) {
    store_as_fp8<Type>(shape.hidden, to, [&](SixteenSums<Type>& sums, std::uint32_t i) {
      for (std::uint32_t term = 0; term < terms.count; ++term) {
        sums.add_sums(terms.from[term], i);
      }
    });
  } else {
    for_units(shape.output_bytes / kUnit, [&](std::uint32_t unit) {
      UnitSum<Type> sum;
      for (std::uint32_t term = 0; term < terms.count; ++term) {
        sum.add_sums(reinterpret_cast<const Vector16*>(terms.from[term]) +
                     unit * UnitSum<Type>::kUnitsOfSums);
      }
      device::store_data(reinterpret_cast<Vector16*>(to) + unit, sum.rounded());
    });
  }
}

// All threads of the grid, in a receive.
template <typename Type, Rows kRows, typename Way>
__device__ void reduce_for_node(const Combining<Way>& combining) {
  const auto sends_to = [&](std::uint32_t source) { return is_relay_for(combining, source); };
  begin_far_partial_sums(combining, sends_to);
  for (std::uint32_t source = 0; source < combining.exchange.shape.ranks(); ++source) {
    const std::uint32_t rows = sends_to(source) ? rows_of(combining, source) : 0;
#pragma unroll 1
    for (std::uint32_t slot = Group::index(); slot < rows; slot += Group::count()) {
      if (Group::warp() == 0) {
        list_parts(combining, source, slot);
      }
      Group::sync<kRows>();
      store_sum_of_parts<Type>(combining, staged_partial_sum(combining, source, slot));
      Group::sync<kRows>();
      if (Group::thread() == 0) {
        count_partial_sums(combining, source, 1);
      }
    }
  }
}

// ---- The source

// The first warp of a group: all ranks of other nodes have begun this call. A relay waits for its
// node, so one that does not come is named here, by itself.
template <typename Way>
__device__ void await_far_combine_headers(const Combining<Way>& combining) {
  const KernelArguments& exchange = combining.exchange;
  for (std::uint32_t rank = lane(); rank < exchange.shape.ranks(); rank += kWarp) {
    if (shares_rows(exchange, rank) && !combining.is_gone(rank)) {
      const std::byte* header =
          mine(exchange) + exchange.shape.combine_header_at(combining.number(), rank);
      std::uint64_t data = 0;
      wait_for(
          exchange, combining.entered, rank,
          [&] { return has_parcel(header, combining.number(), data); }, never_gives_up);
    }
  }
  __syncwarp();
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
