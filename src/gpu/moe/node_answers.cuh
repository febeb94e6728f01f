// Answers of a node, with a row for each node: one row comes back for each token, the sum over all ranks of the node. Each rank
// stores its part, a sum that is not rounded, in the memory of the relay, to which the rows came; that one adds the parts, ranks
// ascending, and puts what it makes (far_answers.cuh).
//
// Which ranks have a part, all of them know from the plan, because each has read the ids of the whole row. The relay waits for
// parts in the receive of a combine, when it has sent its own; so ranks of a node wait for each other's sends alone.
//
// Device code: a group for each row; the first warp reads the plan.
#pragma once

#include "src/gpu/moe/far_answers.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// Whether the node for which `relay` answers may not do so, as a rank there did not come.
inline __device__ bool lacks_rank(const Exchange& exchange, std::uint32_t relay) {
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
  const Exchange& exchange = combining.exchange;
  const bool has_come = wait_for(
      exchange, combining.entered, rank,
      [&] { return device::load_relaxed(word) == combining.number(); },
      [&] { return combining.differs(rank) || (kBetweenNodes && lacks_rank(exchange, rank)); });
  // SYNC moe-word (pairs with src/gpu/moe/words.cuh): what the group reads behind its barrier.
  device::fence_acquire();
  return has_come;
}

// One warp: the ranks of this node that have a part of the answer to a row, as bits. Each thread has the place of a lane.
inline __device__ std::uint64_t ranks_with_parts(const Exchange& exchange, std::int32_t place) {
  const std::int32_t rank = place >= 0 ? exchange.me : mate_at(place);  // below 0: none
  const std::uint64_t bit = rank >= 0 ? std::uint64_t{1} << rank : 0;
  const unsigned low = __reduce_or_sync(kAllLanes, static_cast<unsigned>(bit));
  const unsigned high = __reduce_or_sync(kAllLanes, static_cast<unsigned>(bit >> 32U));
  return low | std::uint64_t{high} << 32U;
}

// One warp: where this rank's part of an answer goes.
template <typename Way>
__device__ void note_part(const Combining<Way>& combining,
                          std::uint32_t source,
                          std::uint32_t slot,
                          std::int32_t place) {
  const Exchange& exchange = combining.exchange;
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
    combining.shared.answered[group][0] =
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
  const Exchange& exchange = combining.exchange;
  return shares_rows(exchange, source) && exchange.relay_here[source] == exchange.me &&
         !combining.is_gone(source);
}

// One warp: the parts of the answer to a row, which are waited for. Those that do not come are left out: then the call fails.
template <typename Way>
__device__ void list_parts(const Combining<Way>& combining,
                           std::uint32_t source,
                           std::uint32_t slot) {
  const Exchange& exchange = combining.exchange;
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
__device__ void answer_for_node(const Combining<Way>& combining) {
  const auto answers = [&](std::uint32_t source) { return is_relay_for(combining, source); };
  begin_far_answers(combining, answers);
  for (std::uint32_t source = 0; source < combining.exchange.shape.ranks(); ++source) {
    const std::uint32_t rows = answers(source) ? rows_of(combining, source) : 0;
#pragma unroll 1
    for (std::uint32_t slot = Group::index(); slot < rows; slot += Group::count()) {
      if (Group::warp() == 0) {
        list_parts(combining, source, slot);
      }
      Group::sync<kRows>();
      store_sum_of_parts<Type>(combining, staged_answer(combining, source, slot));
      Group::sync<kRows>();
      if (Group::thread() == 0) {
        add_answers(combining, source, 1);
      }
    }
  }
}

// ---- The source

// The first warp of a group: all ranks of other nodes have begun this call. A relay waits for its node, so one that does not come is
// named here, by itself.
template <typename Way>
__device__ void await_far_heads(const Combining<Way>& combining) {
  const Exchange& exchange = combining.exchange;
  for (std::uint32_t rank = lane(); rank < exchange.shape.ranks(); rank += kWarp) {
    if (shares_rows(exchange, rank) && !combining.is_gone(rank)) {
      const std::byte* head = mine(exchange) + exchange.shape.head_at(combining.number(), rank);
      std::uint64_t data = 0;
      wait_for(
          exchange, combining.entered, rank,
          [&] { return has_parcel(head, combining.number(), data); }, never_gives_up);
    }
  }
  __syncwarp();
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
