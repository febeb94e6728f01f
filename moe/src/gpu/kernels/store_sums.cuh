// The receive of a combine: partial sums are waited for and added (partial_sums.cuh says how).
//
// Device code: a group for each token; the group's first warp reads the plan, waits for the words
// of its partial sums, and acquires what they tell of before the group's barrier.
#pragma once

#include "moe/src/gpu/kernels/partial_sums.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Polled
//
// Partial sums that are polled (polled.cuh): how a group stores its own for the ranks that wait for
// them, and how it adds up those of others.
//
// Each thread waits for the 16 bytes that it adds, and clears their place, behind the last term
// that has them. Device code, kernels for few rows, where ranks share a node and none may be
// masked.

// A thread's loads of a group's terms.
template <typename Way>
class Polled {
 public:
  explicit __device__ Polled(const Combining<Way>& combining)
      : combining_(combining), terms_(combining.shared.polled[Group::number()]) {}

  static __device__ Vector16 load(const Vector16* from) { return load_polled(from); }

  // Waits for what is not here, and puts kEmptySlot where it was.
  template <Rows kRows, std::uint32_t kTerms>
  __device__ void settle(const SomeTerms<kTerms>& terms,
                         std::uint32_t unit,
                         std::uint32_t /*units*/,
                         Vector16 (&loaded)[1][kTerms]) {
    const std::uint32_t polled = terms_.polled >> terms.first;
    const std::uint32_t cleared = terms_.cleared >> terms.first;
    const auto at = [&](std::uint32_t i) { return const_cast<Vector16*>(terms.from[i]) + unit; };
    await_polled(
        loaded[0],
        [&](std::uint32_t i) { return (polled >> i & 1U) != 0 && !is_given_up(terms.first + i); },
        at,
        [&](std::uint32_t i, std::uint64_t start) {
          return look_around_for(terms.first + i, start);
        });
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      if (given_up_ != 0 && (polled >> i & 1U) != 0) {
        loaded[0][i] = what_came(terms.first + i, at(i), loaded[0][i]);
      }
      if ((cleared >> i & 1U) != 0) {
        store_polled(at(i), empty_slot());
      }
    }
  }

  // One unit of one term.
  __device__ Vector16 take(std::uint32_t term, const Vector16* from) {
    Vector16 loaded[1] = {load(from)};
    if ((terms_.polled >> term & 1U) == 0) {
      return loaded[0];
    }
    await_polled(
        loaded, [&](std::uint32_t /*i*/) { return !is_given_up(term); },
        [&](std::uint32_t /*i*/) { return from; },
        [&](std::uint32_t /*i*/, std::uint64_t start) { return look_around_for(term, start); });
    const Vector16 data = what_came(term, from, loaded[0]);
    if ((terms_.cleared >> term & 1U) != 0) {
      store_polled(const_cast<Vector16*>(from), empty_slot());
    }
    return data;
  }

 private:
  __device__ bool is_given_up(std::uint32_t term) const { return (given_up_ >> term & 1U) != 0; }

  // Of a term that may be given up. If its word is here, so is all of it; else its rank does not
  // come, or makes another combine.
  __device__ Vector16 what_came(std::uint32_t term,
                                const Vector16* from,
                                const Vector16& loaded) const {
    return !is_given_up(term) ? loaded : has_word(term) ? load(from) : Vector16{};
  }

  __device__ bool has_word(std::uint32_t term) const {
    return device::load_relaxed(terms_.words[term]) == combining_.number();
  }

  // What a wait for a term does now and then; `start` is that of look_around. It gives the term up
  // if its word is here, if its rank makes another combine, or if that is missing.
  __device__ std::uint64_t look_around_for(std::uint32_t term, std::uint64_t start) {
    const std::uint32_t rank = terms_.ranks[term];
    bool is_over = has_word(term) || combining_.differs(rank);
    if (!is_over) {
      start = look_around(combining_.exchange, combining_.entered.step, combining_.number(), rank,
                          start);
      is_over = start == 0;
    }
    if (is_over) {
      // SYNC moe-word (pairs with moe/src/gpu/kernels/copy_engine.cuh): what this thread loads
      // again, if the word is here.
      device::fence_acquire();
      given_up_ |= 1U << term;
    }
    return start;
  }

  const Combining<Way>& combining_;
  const PolledTerms& terms_;
  // Terms, as bits: what is still kEmptySlot was sent so, or will not come.
  std::uint32_t given_up_ = 0;
};

// A group: the sum of its terms, as store_sum_by. The loads of all terms are one piece of code, as
// waiting for them is long.
template <typename Type, typename Way>
__device__ void store_polled_sum(const Combining<Way>& combining, std::byte* to, bool weighs) {
  constexpr std::uint32_t kUnitsAtOnce = 1;  // with two, a combine of 128 tokens is 1 to 4 % slower
  constexpr std::uint32_t kTerms = 4;
  const Terms& all = combining.shared.terms[Group::number()];
  const std::uint32_t units = combining.exchange.shape.output_bytes / kUnit;
  Polled<Way> polled(combining);
#pragma unroll 1
  for (std::uint32_t unit = Group::thread(); unit < units; unit += kUnitsAtOnce * Group::size()) {
    UnitSum<Type> sums[kUnitsAtOnce];
#pragma unroll 1
    for (std::uint32_t first = 0; first < all.count; first += kTerms) {
      add_terms<Type, Rows::BlockPerRow>(SomeTerms<kTerms>(all, first), unit, units, weighs, sums,
                                         polled);
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
      if (unit + u * Group::size() < units) {
        device::store_data(reinterpret_cast<Vector16*>(to) + unit + u * Group::size(),
                           sums[u].rounded());
      }
    }
  }
}

// ---- Outputs in place
//
// Outputs in place (weft_moe_config.outputs_in_place): nothing is sent but combine headers, which
// say with which output those for a rank begin. A rank waits for the combine headers of all, then
// reads the outputs of its tokens in their memory, by the slots of their rows.
//
// An output is written again by kernels that follow a later dispatch. Each rank has sent its header
// of that behind the end of this combine, so all of it is read.

inline constexpr std::uint32_t kNoOutputs = ~0U;

// One thread: the output with which those of `rank` for this one begin; none if it does not come,
// or makes another combine.
template <typename Way>
__device__ std::uint32_t await_first_output(const Combining<Way>& combining, std::uint32_t rank) {
  Header header{};
  if (combining.is_gone(rank) || !await_combine_header(combining, rank, header)) {
    return kNoOutputs;
  }
  return static_cast<std::uint32_t>(header.rows);
}

// All threads of a block. Behind it they may read the outputs.
template <typename Way>
__device__ void await_first_outputs(const Combining<Way>& combining) {
  if (const std::uint32_t rank = thread_of_block(); rank < combining.exchange.shape.ranks()) {
    combining.shared.first_output[rank] = await_first_output(combining, rank);
  }
  __syncthreads();
}

// The output of `rank` for the row in its slot.
template <typename Way>
const __device__ std::byte* pulled_output(const Combining<Way>& combining,
                                          std::uint32_t rank,
                                          std::int32_t slot) {
  const KernelArguments& exchange = combining.exchange;
  return exchange.memory[rank] + exchange.shape.output_at(combining.shared.first_output[rank] +
                                                          static_cast<std::uint32_t>(slot));
}

// ---- All that comes

// One thread: whether the partial sum at `index`, from `rank`, is here.
template <typename Way>
__device__ bool await_partial_sum(const Combining<Way>& combining,
                                  std::uint32_t rank,
                                  std::size_t index) {
  const KernelArguments& exchange = combining.exchange;
  const auto* word = is_remote(exchange, rank)
                         ? far_partial_sums_arrived(combining, rank)
                         : at<std::uint64_t>(mine(exchange), exchange.shape.partial_sum_arrived_at(
                                                                 combining.number(), index));
  return await_word(combining, rank, word);
}

// What the plan says of a token of this rank, if it is one (the plan has room for all); each thread
// of a warp has one of its lanes.
struct Request {
  std::int32_t id = -1;
  float weight = 0;
  std::int32_t own_place = 0;  // of no meaning unless adds_in_place
  // The row's at its rank; of no meaning unless that is on another node, or outputs are in place.
  std::int32_t slot = 0;
};

template <typename Way>
__device__ Request request_of(const Combining<Way>& combining,
                              std::uint32_t token,
                              std::uint32_t tokens) {
  const Shape& shape = combining.exchange.shape;
  std::byte* plan = combining.call.plan;
  Request request;
  if (token < shape.max_tokens && Group::warp() == 0 && lane() < shape.topk) {
    const std::size_t index = std::size_t{token} * shape.topk + lane();
    request.id = at<std::int32_t>(plan, shape.plan().ids_at())[index];
    if (token < tokens && combining.weighs() && !combining.is_reduced()) {
      request.weight = combining.call.weighting == WEFT_MOE_WEIGHTS_GIVEN
                           ? combining.call.weights[index]
                           : at<float>(plan, shape.plan().weights_at())[index];
    }
    if (!Way::kInPlace) {
      request.own_place = *at<std::int32_t>(plan, shape.plan().own_place_at(token));
    }
    if (kBetweenNodes || Way::kInPlace) {
      request.slot = at<std::int32_t>(plan, shape.plan().slots_at())[index];
    }
  }
  return request;
}

// One warp: the partial sum that a lane waits for.
struct ExpectedPartialSum {
  std::int32_t rank;    // that sends it; -1: it has no expert
  std::uint32_t first;  // the first lane with the same one
  bool is_first;
  bool is_last;  // of those lanes
  bool is_in_place;
  bool is_awaited;

  template <typename Way>
  __device__ ExpectedPartialSum(const Combining<Way>& combining, const Request& request) {
    const KernelArguments& exchange = combining.exchange;
    rank = request.id < 0 ? -1 : exchange.shape.map.rank_of(request.id);
    rank =
        kBetweenNodes && rank >= 0
            ? static_cast<std::int32_t>(destination_of(exchange, static_cast<std::uint32_t>(rank)))
            : rank;
    const unsigned same = __match_any_sync(kAllLanes, combining.is_reduced() ? rank : request.id);
    first = static_cast<std::uint32_t>(__ffs(static_cast<int>(same)) - 1);
    is_first = request.id >= 0 && first == lane();
    is_last = same >> lane() == 1;
    is_in_place = is_first && combining.adds_in_place(static_cast<std::uint32_t>(rank));
    is_awaited = is_first && !is_in_place && !combining.is_gone(static_cast<std::uint32_t>(rank));
  }
};

// One warp: that of partial sums that are polled. This thread's is at `index`, and becomes term
// `position`; kTopkMax: it has none.
template <typename Way>
__device__ void list_polled(const Combining<Way>& combining,
                            const ExpectedPartialSum& expected,
                            std::uint32_t position,
                            std::size_t index) {
  const KernelArguments& exchange = combining.exchange;
  PolledTerms& polled = combining.shared.polled[Group::number()];
  const bool is_polled = position < kTopkMax;
  if (is_polled) {
    polled.ranks[position] = static_cast<std::uint32_t>(expected.rank);
    polled.words[position] = at<std::uint64_t>(
        mine(exchange), exchange.shape.partial_sum_arrived_at(combining.number(), index));
  }
  const unsigned bits = __reduce_or_sync(kAllLanes, is_polled ? 1U << position : 0);
  const bool once = !combining.keeps_lanes() && (combining.is_reduced() || !combining.weighs());
  const bool is_cleared = is_polled && (once || expected.is_last);
  const unsigned cleared = __reduce_or_sync(kAllLanes, is_cleared ? 1U << position : 0);
  if (lane() == 0) {
    polled.polled = bits;
    polled.cleared = cleared;
  }
}

// One warp: the partial sums of a token in the order of the sum, which are waited for. Precision
// lanes: in the order of lanes, null where there is none.
template <typename Way>
__device__ void list_partial_sums(const Combining<Way>& combining,
                                  std::uint32_t token,
                                  const Request& request) {
  const KernelArguments& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  Terms& terms = terms_of(combining);
  const std::size_t index = std::size_t{token} * shape.topk + lane();
  const std::int32_t id = request.id;
  const ExpectedPartialSum expected(combining, request);
  const auto [rank, first, is_first, is_last, is_in_place, is_awaited] = expected;
  bool has_come = is_in_place;
  if constexpr (Way::kInPlace) {
    has_come = is_first && combining.shared.first_output[rank] != kNoOutputs;
  } else if (Way::kPolls) {
    has_come = is_in_place || is_awaited;  // will have, behind this
  } else if (is_awaited) {
    has_come = await_partial_sum(combining, static_cast<std::uint32_t>(rank), index);
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
  const std::byte* partial_sum =
      mine(exchange) +
      shape.partial_sum_at(combining.number(), std::size_t{token} * shape.topk + first);
  if (has_come && is_remote(exchange, static_cast<std::uint32_t>(rank))) {
    partial_sum = far_partial_sum(combining, static_cast<std::uint32_t>(rank), request.slot);
  }
  if (is_in_place) {
    partial_sum =
        combining.call.rows + static_cast<std::size_t>(request.own_place) * combining.call.stride;
  }
  if constexpr (Way::kInPlace) {
    partial_sum = has_come
                      ? pulled_output(combining, static_cast<std::uint32_t>(rank), request.slot)
                      : nullptr;
  }
  if (all_lanes) {
    terms.from[lane()] = has_come ? partial_sum : nullptr;
  } else if (counts) {
    terms.from[position] = partial_sum;
    terms.weights[position] = request.weight;
  }
  const unsigned counted = __ballot_sync(kAllLanes, counts);
  if (lane() == 0) {
    terms.count = static_cast<std::uint32_t>(__popc(counted));
  }
  if constexpr (Way::kPolls) {
    const bool is_polled = (all_lanes ? has_come : counts) && !is_in_place;
    list_polled(combining, expected, is_polled ? position : kTopkMax,
                std::size_t{token} * shape.topk + first);
  }
}

// A group, where partial sums are polled: a token's.
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

// A group that has read partial sums as fp8, which are not polled, where others are: clears their
// places.
template <typename Way>
__device__ void put_back_fp8(const Combining<Way>& combining) {
  const Shape& shape = combining.exchange.shape;
  if (!shape.polls) {
    return;
  }
  Group::sync<Rows::BlockPerRow>();
  const auto units = static_cast<std::uint32_t>(weft::moe::Fp8Row{shape.hidden}.bytes() / kUnit);
  for (std::uint32_t i = 0; i < terms_of(combining).count; ++i) {
    auto* first = reinterpret_cast<Vector16*>(const_cast<std::byte*>(terms_of(combining).from[i]));
    for_units(units, [&](std::uint32_t unit) { store_polled(first + unit, empty_slot()); });
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
__device__ void await_combine_headers(const Combining<Way>& combining) {
  const std::uint32_t rank = thread_of_block();
  bool is_refused = false;
  if (rank < combining.exchange.shape.ranks() && !combining.is_gone(rank)) {
    Header header{};
    is_refused = !await_combine_header(combining, rank, header);
  }
  if (combining.exchange.shape.polls) {
    clear_spoilt(combining.exchange, combining.entered, __syncthreads_or(is_refused ? 1 : 0) != 0);
  }
}

// The group's tokens, one after the other, or those that a warp draws; what the plan says of the
// next is on its way as above.
template <typename Type, Rows kRows, typename Way>
class TokenSums {
 public:
  __device__ explicit TokenSums(const Combining<Way>& combining)
      : combining_(combining),
        token_(kRows == Rows::WarpPerRow ? drawn_token()
               : Way::kPolls             ? Group::index_of_taker(0)
                                         : Group::index_of_receiver(0)),
        tokens_(combining.call.phases.receives ? combining.shared.tokens : 0) {
    next_ = request_of(combining, token_, tokens_);
  }

  __device__ bool has_more() const { return token_ < tokens_; }

  __device__ void store_next() {
    const std::uint32_t token = token_;
    const Request request = next_;
    token_ = kRows == Rows::WarpPerRow ? drawn_token() : token_ + Group::count();
    next_ = request_of(combining_, token_, tokens_);
    if (Group::warp() == 0) {
      list_partial_sums(combining_, token, request);
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
  Request next_{};
};

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
