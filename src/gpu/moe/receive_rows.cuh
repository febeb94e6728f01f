// The receive of a dispatch. Every block reads all headers and works out where each expert's rows begin; then each group
// waits for one row at a time and brings it to its places. In WEFT_MOE_RANK_MAJOR rows stay where they are.
//
//   row of x = where its expert begins + rows of lower sources for it + its place among those of its source
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/plan.hpp>

#include "src/gpu/moe/remote.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

struct ReceiveMemory {
  std::int32_t rows[kRanksMax];   // of each source
  std::int32_t begin[kRanksMax];  // WEFT_MOE_RANK_COMPACT: of each source's rows
  std::int32_t most_rows;
  // [source][local expert]: rows, then the first of them in x.
  std::int32_t experts[kExpertsMax + kRanksMax];
  alignas(16) std::int32_t
      of_warp[2][kThreads / kWarp];  // sums of a scan; every other one uses the other half
  std::int32_t gaps[kThreads][2];    // rows without a token: the first, and how many
  std::int32_t gap_count;
  // Of each group:
  bool has_come[kGroupsMax];
  std::int32_t copies[kGroupsMax];
  std::int32_t to[kGroupsMax][kTopkMax];  // rows of x
};

struct Receiving {
  const Exchange& exchange;
  const Dispatch& call;
  ReceiveMemory& shared;
  Call entered;

  __device__ std::uint64_t number() const { return entered.number; }
};

// ---- Headers

inline __device__ std::int32_t& experts_of(const Receiving& receiving,
                                           std::uint32_t source,
                                           std::uint32_t expert) {
  return receiving.shared.experts[source * local_experts(receiving.exchange) + expert];
}

// With masks: one block decides whether a rank has come, so that all blocks place rows alike.
inline __device__ void decide(const Receiving& receiving, std::uint32_t parcels) {
  const Exchange& exchange = receiving.exchange;
  for (std::uint32_t source = thread_of_block() / kWarp; source < exchange.shape.ranks();
       source += kThreads / kWarp) {
    bool has_come = !is_missing(exchange, source);
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
        miss(exchange, receiving.entered, source);
      }
      device::store_relaxed(&exchange.state->verdicts[source],
                            receiving.number() * 2 + (has_come ? 1 : 0));
    }
  }
}

// One thread. False if `source` has not come.
inline __device__ bool take_parcel(const Receiving& receiving,
                                   std::uint32_t source,
                                   std::uint32_t index,
                                   std::uint64_t& data) {
  const Exchange& exchange = receiving.exchange;
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

// All threads of the block: rows of each source, and of each of its experts here.
inline __device__ void read_headers(const Receiving& receiving) {
  const Exchange& exchange = receiving.exchange;
  ReceiveMemory& shared = receiving.shared;
  const std::uint32_t ranks = exchange.shape.ranks();
  const std::uint32_t parcels = is_by_rank(exchange) ? 1 : 1 + local_experts(exchange);
  if (exchange.masks && blockIdx.x == 0) {
    decide(receiving, parcels);
  }
  for (std::uint32_t i = thread_of_block(); i < ranks * parcels; i += kThreads) {
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
  }
  __syncthreads();
  if (thread_of_block() == 0) {
    shared.most_rows = 0;
    for (std::uint32_t source = 0; source < ranks; ++source) {
      shared.most_rows = max(shared.most_rows, shared.rows[source]);
    }
  }
  __syncthreads();
  if (blockIdx.x == 0) {
    for (std::uint32_t source = thread_of_block(); source < ranks; source += kThreads) {
      at<std::int32_t>(receiving.call.plan, exchange.shape.plan().rows_here_at())[source] =
          shared.rows[source];
    }
  }
}

// ---- Where rows begin

// One thread: rank layouts.
inline __device__ void begin_ranks(const Receiving& receiving) {
  ReceiveMemory& shared = receiving.shared;
  const Shape& shape = receiving.exchange.shape;
  const bool is_in_place = receiving.exchange.layout == WEFT_MOE_RANK_MAJOR;
  std::int32_t next = 0;
  for (std::uint32_t source = 0; source < shape.ranks(); ++source) {
    shared.begin[source] =
        is_in_place ? static_cast<std::int32_t>(source * shape.max_tokens) : next;
    next += shared.rows[source];
    if (blockIdx.x == 0) {
      receiving.call.counts[source] = shared.rows[source];
      receiving.call.offsets[source] = shared.begin[source];
    }
  }
  if (blockIdx.x == 0) {
    receiving.call.offsets[shape.ranks()] =
        is_in_place ? static_cast<std::int64_t>(shape.arrivals()) : next;
  }
}

// The sum of `value` of all threads before this one; `total` of all. All threads of the block; a barrier stands between two
// calls with the same `of_warp`.
inline __device__ std::int32_t sum_before(std::int32_t (&of_warp)[kThreads / kWarp],
                                          std::int32_t value,
                                          std::int32_t& total) {
  std::int32_t sum = value;
  for (std::uint32_t distance = 1; distance < kWarp; distance *= 2) {
    const std::int32_t other = __shfl_up_sync(kAllLanes, sum, distance);
    sum += lane() >= distance ? other : 0;
  }
  if (lane() == kWarp - 1) {
    of_warp[thread_of_block() / kWarp] = sum;
  }
  __syncwarp();
  __syncthreads();
  std::int32_t before = 0;
  total = 0;
  for (std::uint32_t warp = 0; warp < kThreads / kWarp; ++warp) {
    before += warp < thread_of_block() / kWarp ? of_warp[warp] : 0;
    total += of_warp[warp];
  }
  return before + sum - value;
}

// The groups zero the rows that the list of gaps names.
inline __device__ void clear_gaps(const Receiving& receiving) {
  const Dispatch& call = receiving.call;
  const Shape& shape = receiving.exchange.shape;
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  for (std::int32_t gap = static_cast<std::int32_t>(Group::number());
       gap < receiving.shared.gap_count; gap += static_cast<std::int32_t>(Group::of_block())) {
    for (std::int32_t i = 0; i < receiving.shared.gaps[gap][1]; ++i) {
      const auto row = static_cast<std::size_t>(receiving.shared.gaps[gap][0] + i);
      for_units(units, [&](std::uint32_t unit) {
        device::store_data(at<Vector16>(call.rows, row * shape.row.payload_bytes) + unit, {});
      });
      for (std::size_t k = Group::thread(); k < shape.row.scale_bytes; k += Group::size()) {
        call.row_scales[row * shape.row.scale_bytes + k] = std::byte{0};
      }
      if (Group::thread() == 0) {
        call.row_weights[row] = 0;
      }
    }
  }
}

// All threads of the block: expert layouts, so many experts at a time as there are threads.
inline __device__ void begin_experts(const Receiving& receiving) {
  const Exchange& exchange = receiving.exchange;
  ReceiveMemory& shared = receiving.shared;
  const std::uint32_t experts = local_experts(exchange);
  const std::uint32_t ranks = exchange.shape.ranks();
  const bool is_padded = exchange.layout == WEFT_MOE_EXPERT_PADDED;
  const auto capacity = static_cast<std::int32_t>(exchange.shape.arrivals());
  std::int32_t end = 0;
  for (std::uint32_t first = 0; first < experts; first += kThreads) {
    const std::uint32_t expert = first + thread_of_block();
    std::int32_t rows = 0;
    for (std::uint32_t source = 0; expert < experts && source < ranks; ++source) {
      std::int32_t& of_source = experts_of(receiving, source, expert);
      const std::int32_t count = of_source;
      of_source = rows;
      rows += count;
    }
    const auto room =
        expert >= experts ? 0
        : is_padded ? capacity
                    : static_cast<std::int32_t>(weft::moe::align_up(rows, exchange.alignment));
    if (thread_of_block() == 0) {
      shared.gap_count = 0;
    }
    std::int32_t total = 0;
    const std::int32_t begin = end + sum_before(shared.of_warp[first / kThreads % 2], room, total);
    end += total;
    for (std::uint32_t source = 0; expert < experts && source < ranks; ++source) {
      experts_of(receiving, source, expert) += begin;
    }
    if (expert < experts && blockIdx.x == 0) {
      receiving.call.counts[expert] = rows;
      receiving.call.offsets[expert] = begin;
    }
    if (!is_padded && expert % gridDim.x == blockIdx.x && room > rows) {
      const std::int32_t gap = atomicAdd(&shared.gap_count, 1);
      shared.gaps[gap][0] = begin + rows;
      shared.gaps[gap][1] = room - rows;
    }
    __syncthreads();
    clear_gaps(receiving);
    __syncthreads();
  }
  if (blockIdx.x == 0 && thread_of_block() == 0) {
    receiving.call.offsets[experts] = end;
  }
}

// ---- Rows

// A row as it lies here, and whose it is.
struct Row {
  std::byte* memory;
  std::uint32_t source;
  std::uint32_t slot;
};

inline __device__ std::uint32_t load_word(const std::byte* row, std::size_t offset) {
  return device::load_relaxed(reinterpret_cast<const std::uint32_t*>(row + offset));
}

// One warp: where the lanes of the row go; fills the plan and the list of copies.
inline __device__ void route_to_experts(const Receiving& receiving, const Row& row) {
  const Exchange& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Group::number();
  std::int32_t id = -1;
  float weight = 0;
  std::int32_t place = 0;
  if (lane() < shape.topk) {
    id = static_cast<std::int32_t>(load_word(row.memory, shape.row.ids_at() + lane() * 4));
    weight = __uint_as_float(load_word(row.memory, shape.row.weights_at() + lane() * 4));
    place = static_cast<std::int32_t>(load_word(row.memory, shape.row.places_at() + lane() * 4));
  }
  const std::int32_t local = id - shape.map.first_of(exchange.me);
  const bool is_ours = static_cast<std::uint32_t>(local) < local_experts(exchange);
  const std::int32_t at_row =
      is_ours ? experts_of(receiving, row.source, static_cast<std::uint32_t>(local)) + place : -1;
  const unsigned same = __match_any_sync(kAllLanes, at_row);
  const bool is_first = is_ours && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(lane());
  float sum = weight;
  for (std::uint32_t later = 1; later < shape.topk; ++later) {
    const float other = __shfl_sync(kAllLanes, weight, static_cast<int>(later));
    sum = later > lane() && (same >> later & 1) != 0 ? weft::moe::add(sum, other) : sum;
  }
  const unsigned firsts = __ballot_sync(kAllLanes, is_first);
  if (is_first) {
    receiving.shared.to[group][__popc(firsts & ((1U << lane()) - 1))] = at_row;
    receiving.call.row_weights[at_row] = sum;
  }
  std::byte* plan = receiving.call.plan;
  if (lane() < shape.topk) {
    at<std::int32_t>(plan, shape.plan().place_here_at(row.source, row.slot))[lane()] = at_row;
    at<float>(plan, shape.plan().weights_here_at(row.source, row.slot))[lane()] = weight;
  }
  if (lane() == 0) {
    const std::uint32_t token = load_word(row.memory, shape.row.token_at());
    *at<std::int32_t>(plan, shape.plan().lane_here_at(row.source, row.slot)) =
        static_cast<std::int32_t>(token * shape.topk) + __ffs(static_cast<int>(firsts)) - 1;
    receiving.shared.copies[group] = __popc(firsts);
  }
}

// One warp: the same for rank layouts, whose reader sees the ids and weights.
inline __device__ void route_to_rank(const Receiving& receiving, const Row& row) {
  const Exchange& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Group::number();
  const bool is_in_place = exchange.layout == WEFT_MOE_RANK_MAJOR;
  const std::int32_t at_row =
      receiving.shared.begin[row.source] + static_cast<std::int32_t>(row.slot);
  std::int32_t local = -1;
  if (lane() < shape.topk) {
    const auto id =
        static_cast<std::int32_t>(load_word(row.memory, shape.row.ids_at() + lane() * 4));
    const std::uint32_t weight = load_word(row.memory, shape.row.weights_at() + lane() * 4);
    local = id - shape.map.first_of(exchange.me);
    local = static_cast<std::uint32_t>(local) < local_experts(exchange) ? local : -1;
    const std::size_t packed_at = static_cast<std::size_t>(at_row) * shape.topk + lane();
    if (is_in_place) {
      *at<std::int32_t>(row.memory, shape.row.ids_at() + lane() * 4) = local;
    } else {
      receiving.call.row_ids[packed_at] = local;
      receiving.call.row_weights[packed_at] = __uint_as_float(weight);
    }
  }
  const unsigned ours = __ballot_sync(kAllLanes, local >= 0);
  if (lane() == 0) {
    std::byte* plan = receiving.call.plan;
    const std::uint32_t token = load_word(row.memory, shape.row.token_at());
    *at<std::int32_t>(plan, shape.plan().lane_here_at(row.source, row.slot)) =
        static_cast<std::int32_t>(token * shape.topk) + __ffs(static_cast<int>(ours)) - 1;
    *at<std::int32_t>(plan, shape.plan().place_here_at(row.source, row.slot)) = at_row;
    receiving.shared.to[group][0] = at_row;
    receiving.shared.copies[group] = is_in_place ? 0 : 1;
  }
}

// A row that never came: nothing is sent back for it.
inline __device__ void route_nowhere(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  if (lane() < shape.topk) {
    at<std::int32_t>(receiving.call.plan,
                     shape.plan().place_here_at(row.source, row.slot))[lane()] = -1;
  }
  receiving.shared.copies[Group::number()] = 0;
}

// Scales are packed in x's scales, so their rows may begin anywhere.
template <typename Word>
__device__ void copy_scales(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  const std::size_t words = shape.row.scale_bytes / sizeof(Word);
  for (std::size_t i = Group::thread(); i < words; i += Group::size()) {
    const std::size_t byte = i * sizeof(Word);
    const std::uint32_t loaded = load_word(row.memory, shape.row.scales_at() + byte / 4 * 4);
    const auto word = static_cast<Word>(loaded >> (byte % 4 * 8));
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      at<Word>(receiving.call.row_scales,
               static_cast<std::size_t>(to[copy]) * shape.row.scale_bytes)[i] = word;
    }
  }
}

inline __device__ void copy_row(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const Dispatch& call = receiving.call;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  for_units_loaded(
      at<Vector16>(row.memory, 0), units, [&](std::uint32_t unit, const Vector16& loaded) {
        for (std::int32_t copy = 0; copy < copies; ++copy) {
          device::store_data(at<Vector16>(call.rows, static_cast<std::size_t>(to[copy]) *
                                                         shape.row.payload_bytes) +
                                 unit,
                             loaded);
        }
      });
  const auto bytes = static_cast<std::uint32_t>(shape.row.scale_bytes);
  if (bytes % sizeof(std::uint32_t) == 0) {
    copy_scales<std::uint32_t>(receiving, row);
  } else {
    copy_scales<std::uint8_t>(receiving, row);
  }
}

inline __device__ void take_row(const Receiving& receiving, const Row& row) {
  const Exchange& exchange = receiving.exchange;
  const std::uint32_t group = Group::number();
  if (Group::thread() == 0) {
    const std::uint32_t slot = is_remote(exchange, row.source) ? 0 : row.slot;
    const auto* word = at<std::uint64_t>(
        mine(exchange), exchange.shape.arrived_at(receiving.number(), row.source, slot));
    receiving.shared.has_come[group] = wait_for(
        exchange, receiving.entered, row.source,
        [&] { return device::load_relaxed(word) == receiving.number(); }, [] { return false; });
    // SYNC moe-row (pairs with src/gpu/moe/send_rows.cuh): what the group reads behind its barrier.
    device::fence_acquire();
  }
  Group::sync();
  if (Group::warp() == 0) {
    if (!receiving.shared.has_come[group]) {
      route_nowhere(receiving, row);
    } else if (is_by_rank(exchange)) {
      route_to_rank(receiving, row);
    } else {
      route_to_experts(receiving, row);
    }
  }
  Group::sync();
  if (receiving.shared.copies[group] > 0) {
    copy_row(receiving, row);
  }
}

// WEFT_MOE_RANK_MAJOR: slots without a row name no expert.
inline __device__ void mark_empty(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  if (Group::thread() < shape.topk) {
    *at<std::int32_t>(row.memory, shape.row.ids_at() + Group::thread() * 4) = -1;
  }
}

// All threads of the grid.
inline __device__ void receive_rows(const Receiving& receiving) {
  const Exchange& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  ReceiveMemory& shared = receiving.shared;
  read_headers(receiving);
  if (!is_by_rank(exchange)) {
    begin_experts(receiving);
  } else if (thread_of_block() == 0) {
    begin_ranks(receiving);
  }
  __syncthreads();
  const bool shows_all = exchange.layout == WEFT_MOE_RANK_MAJOR;
  const std::uint32_t slots =
      shows_all ? shape.max_tokens : static_cast<std::uint32_t>(shared.most_rows);
  for (std::uint32_t i = Group::index_of_receiver(shape.ranks()); i < slots * shape.ranks();
       i += Group::count()) {
    const std::uint32_t slot = i / shape.ranks();
    const std::uint32_t source = i - slot * shape.ranks();
    const Row row{mine(exchange) + shape.row_at(receiving.number(), source, slot), source, slot};
    if (slot < static_cast<std::uint32_t>(shared.rows[source])) {
      take_row(receiving, row);
    } else if (shows_all) {
      mark_empty(receiving, row);
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
