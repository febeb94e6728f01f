// The send of a combine: partial sums of what a dispatch brought here (partial_sums.cuh says how).
//
// Device code: a group for each row; the group's first warp reads the plan. Words of peers are
// stored behind a fence that follows the group's barrier (copy_engine.cuh).
#pragma once

#include "moe/src/gpu/kernels/partial_sums.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// A sum, or a row, that is stored for one who polls it.
struct SumForPoller : Plainly, ForPoller {
  using ForPoller::store;
};

// A row that dispatch brought here. Loaded ahead: what compares the loads comes when the row is
// sent, as a warp waits there. Only the group's first warp knows more than the first two: the words
// are the same few for all groups.
struct ReceivedRow {
  std::uint32_t source;
  std::uint32_t slot;
  std::int32_t rows;  // of the source
  std::int32_t lane;  // token * topk + its first lane here, at the source
  // Of the lane that this thread has.
  std::int32_t place;  // in x
  float weight;

  __device__ bool exists() const { return static_cast<std::int32_t>(slot) < rows && lane >= 0; }
};

// Number `index` of all, slot by slot. Its loads do not wait for each other: the plan has room for
// rows that did not come.
template <typename Way>
__device__ ReceivedRow received_row(const Combining<Way>& combining, std::uint32_t index) {
  const KernelArguments& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  std::byte* plan = combining.call.plan;
  // A rank that is alone sends nothing where its rows are added in place.
  const std::uint32_t slot =
      combining.sources() == 0 ? shape.max_tokens : slot_of(exchange, index, combining.sources());
  const std::uint32_t source = combining.source(index - slot * combining.sources());
  ReceivedRow row{source, slot, 0, -1, -1, 0};
  if (slot >= shape.max_tokens || !combining.call.phases.sends || Group::warp() != 0) {
    return row;
  }
  row.rows = at<std::int32_t>(plan, shape.plan().rows_here_at())[source];
  row.lane = *at<std::int32_t>(plan, shape.plan().lane_here_at(source, slot));
  if (lane() < (Way::kByRank && !shares_rows(exchange, source) ? 1 : shape.topk)) {
    row.place = at<std::int32_t>(plan, shape.plan().place_here_at(source, slot))[lane()];
    if (combining.weighs() && !combining.asks_for_weights()) {
      row.weight = at<float>(plan, shape.plan().weights_here_at(source, slot))[lane()];
    }
  }
  return row;
}

template <typename Way>
__device__ void note_partial_sum(const Combining<Way>& combining,
                                 const ReceivedRow& row,
                                 std::size_t index,
                                 std::uint32_t copy) {
  const KernelArguments& exchange = combining.exchange;
  const std::uint32_t group = Group::number();
  if (is_remote(exchange, row.source)) {  // reduced: one for each row
    combining.shared.to[group][copy] = staged_partial_sum(combining, row.source, row.slot);
    combining.shared.arrived[group][copy] = nullptr;
    return;
  }
  std::byte* memory = exchange.memory[row.source];
  combining.shared.to[group][copy] =
      memory + exchange.shape.partial_sum_at(combining.number(), index);
  combining.shared.arrived[group][copy] =
      at<std::uint64_t>(memory, exchange.shape.partial_sum_arrived_at(combining.number(), index));
}

// One warp: the experts' rows that belong to this row, lanes ascending.
template <typename Way>
__device__ void list_experts(const Combining<Way>& combining, const ReceivedRow& row) {
  const KernelArguments& exchange = combining.exchange;
  const Shape& shape = exchange.shape;
  Terms& terms = terms_of(combining);
  const std::int32_t place = row.place;
  float weight = row.weight;
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
      note_partial_sum(combining, row, token * shape.topk + lane(), index);
    }
  }
  if (lane() == 0) {
    terms.count = static_cast<std::uint32_t>(__popc(counted));
    if (combining.is_reduced()) {
      note_partial_sum(combining, row, static_cast<std::size_t>(row.lane), 0);
    }
  }
  if constexpr (kBetweenNodes) {
    if (shares_rows(exchange, row.source)) {
      note_part(combining, row.source, row.slot, place);  // instead
    }
  }
}

// Where ranks of this node make one partial sum together.
template <typename Type, Rows kRows, typename Way>
__device__ void send_part(const Combining<Way>& combining, PendingWords<kRows>& words) {
  const Terms& terms = terms_of(combining);
  const std::uint32_t group = Group::number();
  store_part<Type>(terms, combining.exchange.shape.output_bytes / kUnit,
                   combining.shared.to[group][0], combining.weighs());
  Group::sync<kRows>();
  const bool has_part = Group::thread() == 0 && terms.count > 0;
  words.add(has_part ? combining.shared.arrived[group][0] : nullptr, combining.number());
}

// The experts whose rows make up the partial sum; none if its source is gone. Ends with the group's
// barrier.
template <Rows kRows, typename Way>
__device__ void begin_partial_sum(const Combining<Way>& combining, const ReceivedRow& row) {
  const KernelArguments& exchange = combining.exchange;
  const bool is_here = row.exists() && !combining.is_gone(row.source);  // first warp
  if constexpr (kRows == Rows::WarpPerRow && Way::kByRank) {
    if (lane() == 0 && is_here && row.place >= 0 && !shares_rows(exchange, row.source)) {
      combining.pipeline().begin_row(
          combining.pieces,
          combining.call.rows + static_cast<std::size_t>(row.place) * combining.call.stride);
    }
  }
  if (Group::warp() == 0) {
    if (is_here) {
      list_experts(combining, row);
    } else if (lane() == 0) {
      terms_of(combining).count = 0;
    }
  }
  Group::sync<kRows>();
}

template <typename Type, Rows kRows, typename Way>
__device__ void send_partial_sum(const Combining<Way>& combining,
                                 const ReceivedRow& row,
                                 PendingWords<kRows>& words) {
  const KernelArguments& exchange = combining.exchange;
  const std::uint32_t group = Group::number();
  begin_partial_sum<kRows>(combining, row);
  if constexpr (kBetweenNodes) {
    if (shares_rows(exchange, row.source)) {
      send_part<Type, kRows>(combining, words);
      return;
    }
  }
  const Terms& terms = terms_of(combining);
  const std::uint32_t units = exchange.shape.output_bytes / kUnit;
  std::uint32_t partial_sums = terms.count;
  SumForPoller for_poller;
  if constexpr (Way::kAs == Travels::Fp8) {
    if (terms.count > 0) {
      store_fp8_sum<Type>(terms, exchange.shape.hidden, combining.shared.to[group][0],
                          combining.weighs());
    }
    partial_sums = min(terms.count, 1U);
  } else if (terms.count > 0 && combining.is_reduced() && !Way::kByRank) {
    if constexpr (Way::kPolls) {
      store_sum_by<Type, kRows, 1, 4>(terms, units, combining.shared.to[group][0],
                                      combining.weighs(), for_poller);
    } else {
      store_sum_of_terms<Type, kRows>(combining, combining.shared.to[group][0], combining.weighs());
    }
    partial_sums = 1;
  } else if constexpr (kRows == Rows::WarpPerRow && Way::kByRank) {
    if (lane() == 0 && terms.count > 0) {
      combining.pipeline().store_row(
          combining.pieces, terms.from[0],
          [&](const std::byte* piece, std::uint32_t begin, std::uint32_t bytes) {
            store_bulk(combining.shared.to[group][0] + begin, piece, bytes);
          });
    }
  } else {
    for (std::uint32_t i = 0; i < terms.count; ++i) {
      if constexpr (Way::kPolls) {
        copy_for_poller(terms.from[i], combining.shared.to[group][i], units, for_poller);
      } else {
        copy_units<kRows>(terms.from[i], combining.shared.to[group][i], units);
      }
    }
  }
  if constexpr (Way::kPolls) {
    if (Group::all<kRows>(!for_poller.has_nothing)) {
      return;
    }
  }
  Group::sync<kRows>();
  const bool has_partial_sum = Group::thread() < partial_sums;
  std::uint64_t* word =
      has_partial_sum ? combining.shared.arrived[group][Group::thread()] : nullptr;
  words.add(word, combining.number());
}

// The group's share of the partial sums to send, one after the other. What the plan says of the
// next is on its way while one is sent.
template <typename Type, Rows kRows, typename Way>
class PartialSums {
 public:
  // The first `groups` groups of each block send.
  __device__ PartialSums(const Combining<Way>& combining, std::uint32_t groups)
      : combining_(combining), numbers_(combining.exchange, combining.entered, groups) {
    next_ = received_row(combining, numbers_.index());
    numbers_.begin_next();
    if constexpr (Way::kByRank) {
      const auto* rows =
          at<std::int32_t>(combining.call.plan, combining.exchange.shape.plan().rows_here_at());
      std::int32_t most = 0;
      for (std::uint32_t source = 0; source < combining.exchange.shape.ranks(); ++source) {
        most = max(most, rows[source]);
      }
      most_ = static_cast<std::uint32_t>(most);
    }
  }

  // Behind the barrier with which the block enters. In rank layouts each block reads the most rows
  // from the plan: where one thread did so for all, 1 to 8 tokens took 0.3 to 0.6 us longer, for a
  // reason that is not known.
  __device__ bool has_more() const {
    const std::uint32_t most = Way::kByRank ? most_ : combining_.shared.most_rows;
    return numbers_.index() < most * combining_.sources();
  }

  __device__ void send_all() {
    while (combining_.call.phases.sends && has_more()) {
      send_next();
    }
  }

 private:
  __device__ void send_next() {
    const ReceivedRow row = next_;
    numbers_.next();
    numbers_.begin_next();
    next_ = received_row(combining_, numbers_.index());
    send_partial_sum<Type, kRows>(combining_, row, words_);
    end_far_partial_sum(combining_, row.source, row.slot);
    if (!has_more()) {
      words_.store(combining_.number());
    }
  }

  const Combining<Way>& combining_;
  SendNumbers<kRows> numbers_;
  std::uint32_t most_ = 0;
  ReceivedRow next_{};
  PendingWords<kRows> words_;
};

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
