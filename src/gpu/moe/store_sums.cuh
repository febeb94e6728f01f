// The receive of a combine: answers are waited for and added (combine.cuh says how).
//
// Device code: a group for each token; the group's first warp reads the plan, waits for the words of its answers, and acquires
// what they tell of before the group's barrier.
#pragma once

#include "src/gpu/moe/node_answers.cuh"
#include "src/gpu/moe/polled_answers.cuh"
#include "src/gpu/moe/pulled_answers.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// One thread: whether the answer at `index`, from `rank`, is here.
template <typename Way>
__device__ bool await_answer(const Combining<Way>& combining,
                             std::uint32_t rank,
                             std::size_t index) {
  const Exchange& exchange = combining.exchange;
  const auto* word = is_remote(exchange, rank)
                         ? far_answered(combining, rank)
                         : at<std::uint64_t>(mine(exchange),
                                             exchange.shape.answered_at(combining.number(), index));
  return await_word(combining, rank, word);
}

// What the plan says of a token of this rank, if it is one (the plan has room for all); each thread of a warp has one of its lanes.
struct Asked {
  std::int32_t id = -1;
  float weight = 0;
  std::int32_t own_place = 0;  // of no meaning unless adds_in_place
  // The row's at its rank; of no meaning unless that is on another node, or outputs are in place.
  std::int32_t slot = 0;
};

template <typename Way>
__device__ Asked asked_of(const Combining<Way>& combining,
                          std::uint32_t token,
                          std::uint32_t tokens) {
  const Shape& shape = combining.exchange.shape;
  std::byte* plan = combining.call.plan;
  Asked asked;
  if (token < shape.max_tokens && Group::warp() == 0 && lane() < shape.topk) {
    const std::size_t index = std::size_t{token} * shape.topk + lane();
    asked.id = at<std::int32_t>(plan, shape.plan().ids_at())[index];
    if (token < tokens && combining.weighs() && !combining.is_reduced()) {
      asked.weight = combining.call.weighting == WEFT_MOE_WEIGHTS_GIVEN
                         ? combining.call.weights[index]
                         : at<float>(plan, shape.plan().weights_at())[index];
    }
    if (!Way::kInPlace) {
      asked.own_place = *at<std::int32_t>(plan, shape.plan().own_place_at(token));
    }
    if (kBetweenNodes || Way::kInPlace) {
      asked.slot = at<std::int32_t>(plan, shape.plan().slots_at())[index];
    }
  }
  return asked;
}

// One warp: where the answer to a lane comes from.
struct AnswerTo {
  std::int32_t rank;    // that sends it; -1: it has no expert
  std::uint32_t first;  // the first lane with the same answer
  bool is_first;
  bool is_last;  // of those lanes
  bool is_in_place;
  bool is_awaited;

  template <typename Way>
  __device__ AnswerTo(const Combining<Way>& combining, const Asked& asked) {
    const Exchange& exchange = combining.exchange;
    rank = asked.id < 0 ? -1 : exchange.shape.map.rank_of(asked.id);
    rank =
        kBetweenNodes && rank >= 0
            ? static_cast<std::int32_t>(destination_of(exchange, static_cast<std::uint32_t>(rank)))
            : rank;
    const unsigned same = __match_any_sync(kAllLanes, combining.is_reduced() ? rank : asked.id);
    first = static_cast<std::uint32_t>(__ffs(static_cast<int>(same)) - 1);
    is_first = asked.id >= 0 && first == lane();
    is_last = same >> lane() == 1;
    is_in_place = is_first && combining.adds_in_place(static_cast<std::uint32_t>(rank));
    is_awaited = is_first && !is_in_place && !combining.is_gone(static_cast<std::uint32_t>(rank));
  }
};

// One warp: that of answers that are polled. This thread's is at `index`, and becomes term `position`; kTopkMax: it has none.
template <typename Way>
__device__ void list_polled(const Combining<Way>& combining,
                            const AnswerTo& answered,
                            std::uint32_t position,
                            std::size_t index) {
  const Exchange& exchange = combining.exchange;
  PolledTerms& polled = combining.shared.polled[Group::number()];
  const bool is_polled = position < kTopkMax;
  if (is_polled) {
    polled.ranks[position] = static_cast<std::uint32_t>(answered.rank);
    polled.words[position] =
        at<std::uint64_t>(mine(exchange), exchange.shape.answered_at(combining.number(), index));
  }
  const unsigned bits = __reduce_or_sync(kAllLanes, is_polled ? 1U << position : 0);
  const bool once = !combining.keeps_lanes() && (combining.is_reduced() || !combining.weighs());
  const bool is_cleared = is_polled && (once || answered.is_last);
  const unsigned cleared = __reduce_or_sync(kAllLanes, is_cleared ? 1U << position : 0);
  if (lane() == 0) {
    polled.polled = bits;
    polled.cleared = cleared;
  }
}

// One warp: the answers of a token in the order of the sum, which are waited for. Precision lanes: in the order of lanes,
// null where there is none.
template <typename Way>
__device__ void list_answers(const Combining<Way>& combining,
                             std::uint32_t token,
                             const Asked& asked) {
  const Exchange& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  Terms& terms = terms_of(combining);
  const std::size_t index = std::size_t{token} * shape.topk + lane();
  const std::int32_t id = asked.id;
  const AnswerTo answered(combining, asked);
  const auto [rank, first, is_first, is_last, is_in_place, is_awaited] = answered;
  bool has_come = is_in_place;
  if constexpr (Way::kInPlace) {
    has_come = is_first && combining.shared.first_output[rank] != kNoOutputs;
  } else if (Way::kPolls) {
    has_come = is_in_place || is_awaited;  // will have, behind this
  } else if (is_awaited) {
    has_come = await_answer(combining, static_cast<std::uint32_t>(rank), index);
  }
  __syncwarp();
  has_come = __shfl_sync(kAllLanes, has_come ? 1 : 0, static_cast<int>(first)) != 0 && id >= 0;
  const bool all_lanes = combining.keeps_lanes();
  const bool counts = has_come && (is_first || (!combining.is_reduced() && combining.weighs()));
  std::uint32_t position = lane();
  const std::int32_t order =
      kBetweenNodes && rank >= 0 ? static_cast<std::int32_t>(exchange.first_there[rank]) : rank;
  if (!all_lanes) {
    position = 0;
    for (int other = 0; other < static_cast<int>(shape.topk); ++other) {
      const bool other_counts = __shfl_sync(kAllLanes, counts ? 1 : 0, other) != 0;
      const std::int32_t other_order = __shfl_sync(kAllLanes, order, other);
      const bool is_earlier =
          combining.is_reduced() ? other_order < order : other < static_cast<int>(lane());
      position += other_counts && is_earlier ? 1 : 0;
    }
  }
  const std::byte* answer =
      mine(exchange) + shape.answer_at(combining.number(), std::size_t{token} * shape.topk + first);
  if (has_come && is_remote(exchange, static_cast<std::uint32_t>(rank))) {
    answer = far_answer(combining, static_cast<std::uint32_t>(rank), asked.slot);
  }
  if (is_in_place) {
    answer =
        combining.call.rows + static_cast<std::size_t>(asked.own_place) * combining.call.stride;
  }
  if constexpr (Way::kInPlace) {
    answer =
        has_come ? pulled_answer(combining, static_cast<std::uint32_t>(rank), asked.slot) : nullptr;
  }
  if (all_lanes) {
    terms.from[lane()] = has_come ? answer : nullptr;
  } else if (counts) {
    terms.from[position] = answer;
    terms.weights[position] = asked.weight;
  }
  const unsigned counted = __ballot_sync(kAllLanes, counts);
  if (lane() == 0) {
    terms.count = static_cast<std::uint32_t>(__popc(counted));
  }
  if constexpr (Way::kPolls) {
    const bool is_polled = (all_lanes ? has_come : counts) && !is_in_place;
    list_polled(combining, answered, is_polled ? position : kTopkMax,
                std::size_t{token} * shape.topk + first);
  }
}

// A group, where answers are polled: a token's.
template <typename Type, typename Way>
__device__ void store_polled_token(const Combining<Way>& combining, std::uint32_t token) {
  const Shape& shape = combining.exchange.shape;
  const Terms& terms = terms_of(combining);
  const std::uint32_t units = shape.output_bytes / kUnit;
  if (!combining.keeps_lanes()) {
    store_polled_sum<Type>(combining, combining.call.out + std::size_t{token} * shape.output_bytes,
                           combining.weighs() && !combining.is_reduced());
    return;
  }
  Polled<Way> polled(combining);
  for (std::uint32_t i = 0; i < shape.topk; ++i) {
    auto* to = reinterpret_cast<Vector16*>(combining.call.out) +
               (std::size_t{token} * shape.topk + i) * units;
    const auto* from = reinterpret_cast<const Vector16*>(terms.from[i]);
    for_units(units, [&](std::uint32_t unit) {
      device::store_data(to + unit, from != nullptr ? polled.take(i, from + unit) : Vector16{});
    });
  }
}

// A group that has read answers as fp8, which are not polled, where others are: clears their places.
template <typename Way>
__device__ void put_back_fp8(const Combining<Way>& combining) {
  const Shape& shape = combining.exchange.shape;
  if (!shape.polls) {
    return;
  }
  Group::sync<Rows::Few>();
  const auto units = static_cast<std::uint32_t>(weft::moe::Fp8Row{shape.hidden}.bytes() / kUnit);
  for (std::uint32_t i = 0; i < terms_of(combining).count; ++i) {
    auto* first = reinterpret_cast<Vector16*>(const_cast<std::byte*>(terms_of(combining).from[i]));
    for_units(units, [&](std::uint32_t unit) { store_polled(first + unit, nothing()); });
  }
}

// Partial sums of ranks are added as they are; so are rows without weights.
template <typename Type, Rows kRows, typename Way>
__device__ void store_token(const Combining<Way>& combining, std::uint32_t token) {
  const Shape& shape = combining.exchange.shape;
  const std::uint32_t units = shape.output_bytes / kUnit;
  std::byte* sum = combining.call.out + std::size_t{token} * shape.output_bytes;
  if constexpr (Way::kAs == Travels::Fp8) {
    store_sum_of_fp8<Type>(terms_of(combining), shape.hidden, sum);
    put_back_fp8(combining);
    return;
  }
  if constexpr (Way::kPolls) {
    store_polled_token<Type>(combining, token);
    return;
  }
  if (!combining.keeps_lanes()) {
    store_sum_of_terms<Type, kRows>(combining, sum, combining.weighs() && !combining.is_reduced());
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

// The last block: all ranks have begun this call, so they have left the one before the last.
template <typename Way>
__device__ void await_heads(const Combining<Way>& combining) {
  const std::uint32_t rank = thread_of_block();
  bool is_refused = false;
  if (rank < combining.exchange.shape.ranks() && !combining.is_gone(rank)) {
    Header head{};
    is_refused = !await_head(combining, rank, head);
  }
  if (combining.exchange.shape.polls) {
    clear_spoilt(combining.exchange, combining.entered, __syncthreads_or(is_refused ? 1 : 0) != 0);
  }
}

// The group's tokens, one after the other, or those that a warp draws; what the plan says of the next is on its way as above.
template <typename Type, Rows kRows, typename Way>
class Sums {
 public:
  __device__ explicit Sums(const Combining<Way>& combining)
      : combining_(combining),
        token_(kRows == Rows::Many ? drawn_token()
               : Way::kPolls       ? Group::index_of_taker(0)
                                   : Group::index_of_receiver(0)),
        tokens_(combining.call.phases.receives ? combining.shared.tokens : 0) {
    next_ = asked_of(combining, token_, tokens_);
  }

  __device__ bool has_more() const { return token_ < tokens_; }

  __device__ void store_next() {
    const std::uint32_t token = token_;
    const Asked asked = next_;
    token_ = kRows == Rows::Many ? drawn_token() : token_ + Group::count();
    next_ = asked_of(combining_, token_, tokens_);
    if (Group::warp() == 0) {
      list_answers(combining_, token, asked);
    }
    Group::sync<kRows>();
    store_token<Type, kRows>(combining_, token);
    Group::sync<kRows>();
  }

 private:
  __device__ std::uint32_t drawn_token() const {
    return draw<1, kGroupsMax>(combining_.shared.drawn);
  }

  const Combining<Way>& combining_;
  std::uint32_t token_;
  std::uint32_t tokens_;
  Asked next_{};
};

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
