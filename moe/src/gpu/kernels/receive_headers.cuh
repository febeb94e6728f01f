// What a receiver works out before it takes rows: how many each source sends, and where each
// expert's rows begin. Every block does so for itself, from the headers, and zeroes its share of
// the rows between experts that the alignment leaves.
//
// Device code: all readers of a block together, unless it says otherwise.
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/plan.hpp>

#include "moe/src/gpu/kernels/nodes.cuh"
#include "moe/src/gpu/kernels/places.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Headers

// With masks: one block decides whether a rank has come, so that all blocks place rows alike.
template <typename Path>
__device__ void decide(const Receiving<Path>& receiving, std::uint32_t parcels) {
  const KernelArguments& exchange = receiving.exchange;
#pragma unroll 1
  for (std::uint32_t source = Readers<Path>::warp(); source < exchange.shape.ranks();
       source += Readers<Path>::kWarps) {
    bool has_come = !is_missing(exchange, source);
#pragma unroll 1
    for (std::uint32_t i = lane(); has_come && i < parcels; i += kWarp) {
      const std::byte* from =
          mine(exchange) + exchange.shape.count_at(receiving.number(), source, i);
      const std::byte* first =
          mine(exchange) + exchange.shape.count_at(receiving.number(), source, 0);
      std::uint64_t data = 0;
      has_come =
          await_parcel(exchange, receiving.entered, source, {from, first}, data, never_gives_up);
    }
    has_come = __all_sync(kAllLanes, has_come);
    if (lane() == 0) {
      if (!has_come) {
        mark_missing(exchange, receiving.entered, source);
      }
      device::store_relaxed(&exchange.state->verdicts[source],
                            receiving.number() * 2 + (has_come ? 1 : 0));
    }
  }
}

// One thread. False if `source` has not come.
template <typename Path>
__device__ bool take_parcel(const Receiving<Path>& receiving,
                            std::uint32_t source,
                            std::uint32_t index,
                            std::uint64_t& data) {
  const KernelArguments& exchange = receiving.exchange;
  if (exchange.masks) {
    std::uint64_t verdict = 0;
    do {
      verdict = device::load_relaxed(&exchange.state->verdicts[source]);
    } while (verdict / 2 != receiving.number());
    if (verdict % 2 == 0) {
      return false;
    }
  }
  const std::byte* from =
      mine(exchange) + exchange.shape.count_at(receiving.number(), source, index);
  const std::byte* first = mine(exchange) + exchange.shape.count_at(receiving.number(), source, 0);
  return await_parcel(exchange, receiving.entered, source, {from, first}, data, never_gives_up);
}

// In rank layouts, behind the headers. Of rows that came by node, some are for other ranks alone.
template <typename Path>
__device__ std::int32_t rows_for_this_rank(const Receiving<Path>& receiving, std::uint32_t source) {
  const std::int32_t rows = receiving.shared.rows[source];
  return places_ranks(receiving.exchange) ? min(rows, experts_of(receiving, source, 0)) : rows;
}

// One thread: where each source's rows begin, in rank layouts.
template <typename Path>
__device__ void begin_ranks(const Receiving<Path>& receiving) {
  ReceiveMemory& shared = receiving.shared;
  const Shape& shape = receiving.exchange.shape;
  const bool is_in_place = weft::moe::is_in_place(receiving.exchange.layout);
  std::int32_t next = 0;
#pragma unroll 1
  for (std::uint32_t source = 0; source < shape.ranks(); ++source) {
    shared.begin[source] =
        is_in_place ? static_cast<std::int32_t>(source * shape.max_tokens) : next;
    const std::int32_t rows = rows_for_this_rank(receiving, source);
    next += rows;
    if (blockIdx.x == 0) {
      receiving.call.counts[source] = rows;
      receiving.call.offsets[source] = shared.begin[source];
    }
  }
  if (blockIdx.x == 0) {
    receiving.call.offsets[shape.ranks()] =
        is_in_place ? static_cast<std::int64_t>(shape.arrivals()) : next;
  }
}

// Rows of each source, and of each of its experts here.
template <typename Path>
__device__ void read_headers(const Receiving<Path>& receiving) {
  const KernelArguments& exchange = receiving.exchange;
  ReceiveMemory& shared = receiving.shared;
  const std::uint32_t ranks = exchange.shape.ranks();
  const std::uint32_t parcels = parcels_for<Path>(exchange, local_experts(exchange));
  if (exchange.masks && blockIdx.x == 0) {
    decide(receiving, parcels);
  }
#pragma unroll 1
  for (std::uint32_t i = Readers<Path>::thread(); i < ranks * parcels; i += Readers<Path>::kCount) {
    const std::uint32_t source = i / parcels;
    const std::uint32_t index = i - source * parcels;
    std::uint64_t data = 0;
    const bool has_come = take_parcel(receiving, source, index, data);
    if (index > 0) {
      experts_of(receiving, source, index - 1) =
          has_come ? static_cast<std::int32_t>(static_cast<std::uint32_t>(data)) : 0;
      continue;
    }
    const std::int32_t rows = has_come ? unpacked(data).rows : 0;
    if (rows < 0 && blockIdx.x == 0) {
      record_refusal(exchange, WEFT_MOE_DISPATCH, receiving.number(), source, kRefused);
    }
    const auto most = static_cast<std::int32_t>(exchange.shape.max_tokens);
    shared.rows[source] = rows < 0 ? 0 : min(rows, most);
    shared.as_parcels[source] =
        !kBetweenNodes && has_come && (unpacked(data).mode & kAsParcels) != 0;
  }
  Readers<Path>::sync();
  if (Readers<Path>::thread() == 0) {
    std::int32_t most = 0;
    bool some_as_parcels = false;
    bool some_as_words = false;
#pragma unroll 1
    for (std::uint32_t source = 0; source < ranks; ++source) {
      const std::int32_t rows = shared.rows[source];
      most = max(most, rows);
      some_as_parcels = some_as_parcels || (rows > 0 && shared.as_parcels[source]);
      some_as_words = some_as_words || (rows > 0 && !shared.as_parcels[source]);
    }
    shared.most_rows = most;
    if (blockIdx.x == 0) {
      at<PlanHeader>(receiving.call.plan, 0)->most_rows = most;
    }
    shared.some_as_parcels = some_as_parcels;
    shared.some_as_words = some_as_words;
    if constexpr (Path::kByRank) {
      begin_ranks(receiving);
    }
  }
  if (blockIdx.x == 0) {
#pragma unroll 1
    for (std::uint32_t source = Readers<Path>::thread(); source < ranks;
         source += Readers<Path>::kCount) {
      at<std::int32_t>(receiving.call.plan, exchange.shape.plan().rows_here_at())[source] =
          shared.rows[source];
    }
  }
}

// ---- Where rows begin

// The sum of `value` of all readers before this one; `total` of all. A barrier stands between two
// calls with the same `of_warp`.
template <typename Path>
__device__ std::int32_t sum_before(std::int32_t (&of_warp)[MostReaders::kWarps],
                                   std::int32_t value,
                                   std::int32_t& total) {
  std::int32_t sum = value;
  for (std::uint32_t distance = 1; distance < kWarp; distance *= 2) {
    const std::int32_t other = __shfl_up_sync(kAllLanes, sum, distance);
    sum += lane() >= distance ? other : 0;
  }
  if (lane() == kWarp - 1) {
    of_warp[Readers<Path>::warp()] = sum;
  }
  __syncwarp();
  Readers<Path>::sync();
  std::int32_t before = 0;
  total = 0;
  for (std::uint32_t warp = 0; warp < Readers<Path>::kWarps; ++warp) {
    before += warp < Readers<Path>::warp() ? of_warp[warp] : 0;
    total += of_warp[warp];
  }
  return before + sum - value;
}

// The rows that the list of gaps names become zeros.
template <typename Path>
__device__ void clear_gaps(const Receiving<Path>& receiving) {
  const Dispatch& call = receiving.call;
  const Shape& shape = receiving.exchange.shape;
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
#pragma unroll 1
  for (std::int32_t gap = 0; gap < receiving.shared.gap_count; ++gap) {
#pragma unroll 1
    for (std::int32_t i = 0; i < receiving.shared.gaps[gap][1]; ++i) {
      const auto row = static_cast<std::size_t>(receiving.shared.gaps[gap][0] + i);
#pragma unroll 1
      for (std::uint32_t unit = Readers<Path>::thread(); unit < units;
           unit += Readers<Path>::kCount) {
        device::store_data(at<Vector16>(call.rows, row * shape.row.payload_bytes) + unit, {});
      }
#pragma unroll 1
      for (std::size_t k = Readers<Path>::thread(); k < shape.row.scale_bytes;
           k += Readers<Path>::kCount) {
        call.row_scales[row * shape.row.scale_bytes + k] = std::byte{0};
      }
      if (Readers<Path>::thread() == 0) {
        call.row_weights[row] = 0;
      }
    }
  }
}

// WEFT_MOE_EXPERT_PADDED: all experts have as much room.
template <typename Path>
__device__ void begin_padded_experts(const Receiving<Path>& receiving) {
  const KernelArguments& exchange = receiving.exchange;
  const std::uint32_t experts = local_experts(exchange);
  const auto capacity = static_cast<std::int32_t>(exchange.shape.arrivals());
#pragma unroll 1
  for (std::uint32_t expert = Readers<Path>::thread(); expert <= experts;
       expert += Readers<Path>::kCount) {
    const std::int32_t begin = static_cast<std::int32_t>(expert) * capacity;
    std::int32_t next = begin;
#pragma unroll 1
    for (std::uint32_t source = 0; expert < experts && source < exchange.shape.ranks(); ++source) {
      std::int32_t& of_source = experts_of(receiving, source, expert);
      const std::int32_t count = of_source;
      of_source = next;
      next += count;
    }
    if (blockIdx.x == 0) {
      receiving.call.offsets[expert] = begin;
      if (expert < experts) {
        receiving.call.counts[expert] = next - begin;
      }
    }
  }
}

// WEFT_MOE_EXPERT_COMPACT, so many experts at a time as there are readers.
template <typename Path>
__device__ void begin_compact_experts(const Receiving<Path>& receiving) {
  const KernelArguments& exchange = receiving.exchange;
  ReceiveMemory& shared = receiving.shared;
  const std::uint32_t experts = local_experts(exchange);
  const std::uint32_t ranks = exchange.shape.ranks();
  const bool has_gaps = exchange.alignment > 1;
  std::int32_t end = 0;
#pragma unroll 1
  for (std::uint32_t first = 0; first < experts; first += Readers<Path>::kCount) {
    const std::uint32_t expert = first + Readers<Path>::thread();
    std::int32_t rows = 0;
#pragma unroll 1
    for (std::uint32_t source = 0; expert < experts && source < ranks; ++source) {
      std::int32_t& of_source = experts_of(receiving, source, expert);
      const std::int32_t count = of_source;
      of_source = rows;
      rows += count;
    }
    const auto room =
        expert >= experts
            ? 0
            : static_cast<std::int32_t>(weft::moe::align_up(rows, exchange.alignment));
    if (Readers<Path>::thread() == 0) {
      shared.gap_count = 0;
    }
    std::int32_t total = 0;
    const std::int32_t begin =
        end + sum_before<Path>(shared.of_warp[first / Readers<Path>::kCount % 2], room, total);
    end += total;
#pragma unroll 1
    for (std::uint32_t source = 0; expert < experts && source < ranks; ++source) {
      experts_of(receiving, source, expert) += begin;
    }
    if (expert < experts && blockIdx.x == 0) {
      receiving.call.counts[expert] = rows;
      receiving.call.offsets[expert] = begin;
    }
    if (!has_gaps) {
      continue;
    }
    if (expert % gridDim.x == blockIdx.x && room > rows) {
      const std::int32_t gap = atomicAdd(&shared.gap_count, 1);
      shared.gaps[gap][0] = begin + rows;
      shared.gaps[gap][1] = room - rows;
    }
    Readers<Path>::sync();
    clear_gaps(receiving);
    Readers<Path>::sync();
  }
  if (blockIdx.x == 0 && Readers<Path>::thread() == 0) {
    receiving.call.offsets[experts] = end;
  }
}

// All threads of the block: how many rows come, and where those of each source or expert begin.
// Behind it all may use that. Where readers alone take rows, the first warp may only when they have
// (receive_rows).
template <typename Path>
__device__ void begin_rows(const Receiving<Path>& receiving) {
  if (Readers<Path>::have_this_thread()) {
    read_headers(receiving);
    if constexpr (!Path::kByRank) {
      if (receiving.exchange.layout == WEFT_MOE_EXPERT_PADDED) {
        begin_padded_experts(receiving);
      } else {
        begin_compact_experts(receiving);
      }
    }
  }
  if (!receiving.readers_take_rows() && !Path::kPolls) {
    __syncthreads();
  } else if (Readers<Path>::have_this_thread()) {
    Readers<Path>::sync();
  }
  if constexpr (Path::kPolls) {
    Taker::go_on<kTakersThatRead<Path>>();
  }
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
