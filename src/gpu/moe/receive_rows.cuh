// The receive of a dispatch. Every block works out where each expert's rows begin (receive_headers.cuh); then each group
// waits for rows and brings them to their places. In WEFT_MOE_RANK_MAJOR rows stay where they are. Rows of this rank itself
// may have been laid out by the send (send_rows.cuh).
//
//   row of x = where its expert begins + rows of lower sources for it + its place among those of its source
#pragma once

#include <weft/moe/number.hpp>

#include "src/gpu/moe/receive_headers.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// A row as it lies here, and whose it is.
struct Row {
  std::byte* memory;
  std::uint32_t source;
  std::uint32_t slot;
};

inline __device__ std::uint32_t load_word(const std::byte* row, std::size_t offset) {
  return device::load_relaxed(reinterpret_cast<const std::uint32_t*>(row + offset));
}

// What a row says of itself; each thread of a warp has one of its lanes.
struct Routes {
  std::int32_t id = -1;
  float weight = 0;
  std::int32_t place = 0;  // among the rows of this source for this expert
  std::uint32_t token = 0;
};

// One warp: those of a row that is here.
inline __device__ Routes routes_of(const Exchange& exchange, const Row& row) {
  const Shape& shape = exchange.shape;
  Routes routes;
  if (lane() < shape.topk) {
    routes.id = static_cast<std::int32_t>(load_word(row.memory, shape.row.ids_at() + lane() * 4));
    routes.weight = __uint_as_float(load_word(row.memory, shape.row.weights_at() + lane() * 4));
    if (!is_by_rank(exchange)) {
      routes.place =
          static_cast<std::int32_t>(load_word(row.memory, shape.row.places_at() + lane() * 4));
    }
  }
  routes.token = load_word(row.memory, shape.row.token_at());
  return routes;
}

// One warp: where the lanes of the row go; fills the plan and the list of copies.
inline __device__ void route_to_experts(const Receiving& receiving,
                                        const Row& row,
                                        const Routes& routes) {
  const Exchange& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Group::number();
  const float weight = routes.weight;
  const std::int32_t local = routes.id - shape.map.first_of(exchange.me);
  const bool is_ours = static_cast<std::uint32_t>(local) < local_experts(exchange);
  const std::int32_t at_row =
      is_ours ? experts_of(receiving, row.source, static_cast<std::uint32_t>(local)) + routes.place
              : -1;
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
    *at<std::int32_t>(plan, shape.plan().lane_here_at(row.source, row.slot)) =
        static_cast<std::int32_t>(routes.token * shape.topk) + __ffs(static_cast<int>(firsts)) - 1;
    receiving.shared.copies[group] = __popc(firsts);
  }
}

// One warp: the same for rank layouts, whose reader sees the ids and weights.
inline __device__ void route_to_rank(const Receiving& receiving,
                                     const Row& row,
                                     const Routes& routes) {
  const Exchange& exchange = receiving.exchange;
  const Shape& shape = exchange.shape;
  const std::uint32_t group = Group::number();
  const bool is_in_place = exchange.layout == WEFT_MOE_RANK_MAJOR;
  const std::int32_t at_row =
      receiving.shared.begin[row.source] + static_cast<std::int32_t>(row.slot);
  std::int32_t local = -1;
  if (lane() < shape.topk) {
    local = routes.id - shape.map.first_of(exchange.me);
    local = static_cast<std::uint32_t>(local) < local_experts(exchange) ? local : -1;
    const std::size_t packed_at = static_cast<std::size_t>(at_row) * shape.topk + lane();
    if (is_in_place) {
      *at<std::int32_t>(row.memory, shape.row.ids_at() + lane() * 4) = local;
    } else {
      receiving.call.row_ids[packed_at] = local;
      receiving.call.row_weights[packed_at] = routes.weight;
    }
  }
  const unsigned ours = __ballot_sync(kAllLanes, local >= 0);
  if (lane() == 0) {
    std::byte* plan = receiving.call.plan;
    *at<std::int32_t>(plan, shape.plan().lane_here_at(row.source, row.slot)) =
        static_cast<std::int32_t>(routes.token * shape.topk) + __ffs(static_cast<int>(ours)) - 1;
    *at<std::int32_t>(plan, shape.plan().place_here_at(row.source, row.slot)) = at_row;
    if (row.source == static_cast<std::uint32_t>(exchange.me)) {
      *at<std::int32_t>(plan, shape.plan().own_place_at(routes.token)) = at_row;
    }
    receiving.shared.to[group][0] = at_row;
    receiving.shared.copies[group] = is_in_place ? 0 : 1;
  }
}

inline __device__ void route(const Receiving& receiving, const Row& row, const Routes& routes) {
  if (is_by_rank(receiving.exchange)) {
    route_to_rank(receiving, row, routes);
  } else {
    route_to_experts(receiving, row, routes);
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

// Scales are packed in x's scales, so their rows may begin anywhere. scales_at(byte) has the 4 bytes from `byte` on.
template <typename Word, typename ScalesAt>
__device__ void copy_words_of_scales(const Receiving& receiving, ScalesAt&& scales_at) {
  const Shape& shape = receiving.exchange.shape;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  const std::size_t words = shape.row.scale_bytes / sizeof(Word);
  for (std::size_t i = Group::thread(); i < words; i += Group::size()) {
    const std::size_t byte = i * sizeof(Word);
    const auto word = static_cast<Word>(scales_at(byte / 4 * 4) >> (byte % 4 * 8));
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      at<Word>(receiving.call.row_scales,
               static_cast<std::size_t>(to[copy]) * shape.row.scale_bytes)[i] = word;
    }
  }
}

template <typename ScalesAt>
__device__ void copy_scales(const Receiving& receiving, ScalesAt&& scales_at) {
  if (receiving.exchange.shape.row.scale_bytes % sizeof(std::uint32_t) == 0) {
    copy_words_of_scales<std::uint32_t>(receiving, scales_at);
  } else {
    copy_words_of_scales<std::uint8_t>(receiving, scales_at);
  }
}

template <Rows kRows>
__device__ void copy_row(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const Dispatch& call = receiving.call;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  for_units_loaded<kRows>(
      at<Vector16>(row.memory, 0), units, [&](std::uint32_t unit, const Vector16& loaded) {
        for (std::int32_t copy = 0; copy < copies; ++copy) {
          device::store_data(at<Vector16>(call.rows, static_cast<std::size_t>(to[copy]) *
                                                         shape.row.payload_bytes) +
                                 unit,
                             loaded);
        }
      });
  copy_scales(receiving, [&](std::size_t byte) {
    return load_word(row.memory, shape.row.scales_at() + byte);
  });
}

// One thread: whether the row is here.
inline __device__ bool await_row(const Receiving& receiving, const Row& row) {
  const Exchange& exchange = receiving.exchange;
  const std::uint32_t slot = is_remote(exchange, row.source) ? 0 : row.slot;
  const auto* word =
      at<std::uint64_t>(rows_from(exchange, row.source),
                        exchange.shape.arrived_at(receiving.number(), row.source, slot));
  const bool has_come = wait_for(
      exchange, receiving.entered, row.source,
      [&] { return device::load_relaxed(word) == receiving.number(); }, [] { return false; });
  // SYNC moe-word (pairs with src/gpu/moe/exchange.cuh): what the group reads behind its barrier.
  device::fence_acquire();
  return has_come;
}

inline __device__ void take_row(const Receiving& receiving, const Row& row) {
  const std::uint32_t group = Group::number();
  if (Group::thread() == 0) {
    receiving.shared.has_come[group] = await_row(receiving, row);
  }
  Group::sync<Rows::Few>();  // also: the last row's places are read
  if (Group::warp() == 0) {
    if (receiving.shared.has_come[group]) {
      route(receiving, row, routes_of(receiving.exchange, row));
    } else {
      route_nowhere(receiving, row);
    }
  }
  Group::sync<Rows::Few>();
  if (receiving.shared.copies[group] > 0) {
    copy_row<Rows::Few>(receiving, row);
  }
}

// WEFT_MOE_RANK_MAJOR: slots without a row name no expert.
inline __device__ void mark_empty(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  if (Group::thread() < shape.topk) {
    *at<std::int32_t>(row.memory, shape.row.ids_at() + Group::thread() * 4) = -1;
  }
}

// Row number `index` of all, slot by slot; `slots` of each source.
struct Order {
  const Receiving& receiving;
  std::uint32_t slots;
  bool has_own;  // rows of this rank itself, too

  __device__ std::uint32_t sources() const {
    return receiving.exchange.shape.ranks() - (has_own ? 0 : 1);
  }

  __device__ std::uint32_t count() const { return slots * sources(); }

  __device__ Row row(std::uint32_t index) const {
    const Exchange& exchange = receiving.exchange;
    const std::uint32_t slot = index / sources();
    std::uint32_t source = index - slot * sources();
    source += !has_own && source >= static_cast<std::uint32_t>(exchange.me) ? 1 : 0;
    return {rows_from(exchange, source) + exchange.shape.row_at(receiving.number(), source, slot),
            source, slot};
  }

  __device__ bool has(const Row& row) const {
    return row.slot < static_cast<std::uint32_t>(receiving.shared.rows[row.source]);
  }
};

// Rows that a warp waits for at once.
inline constexpr std::uint32_t kAtOnce = kRowsPerFence<Rows::Many>;

// A warp: whether the thread's row of these is here, or none is to come. As it was when the load began; nothing is acquired.
inline __device__ bool sees_row(const Order& order, std::uint32_t first) {
  const std::uint32_t mine_of_them = first + lane() * Group::count();
  if (lane() >= kAtOnce || mine_of_them >= order.count()) {
    return true;
  }
  const Exchange& exchange = order.receiving.exchange;
  const Row row = order.row(mine_of_them);
  return !order.has(row) ||
         device::load_relaxed(at<std::uint64_t>(
             mine(exchange), exchange.shape.arrived_at(order.receiving.number(), row.source,
                                                       row.slot))) == order.receiving.number();
}

// A warp: row `first`, and every Group::count()-th after it. What rows say of themselves is on its way for all together.
inline __device__ void take_rows_by_warp(const Order& order, std::uint32_t first, bool with_empty) {
  const std::uint32_t mine = first + lane() * Group::count();
  bool has_come = false;
  if (lane() < kAtOnce && mine < order.count()) {
    if (const Row row = order.row(mine); order.has(row)) {
      has_come = await_row(order.receiving, row);
    }
  }
  __syncwarp();
  const unsigned have_come = __ballot_sync(kAllLanes, has_come);
  Routes routes[kAtOnce];
#pragma unroll
  for (std::uint32_t i = 0; i < kAtOnce; ++i) {
    if ((have_come >> i & 1U) != 0) {
      routes[i] = routes_of(order.receiving.exchange, order.row(first + i * Group::count()));
    }
  }
#pragma unroll 1
  for (std::uint32_t i = 0; i < kAtOnce && first + i * Group::count() < order.count(); ++i) {
    const Routes of_row = routes[0];
#pragma unroll
    for (std::uint32_t later = 1; later < kAtOnce; ++later) {
      routes[later - 1] = routes[later];
    }
    const Row row = order.row(first + i * Group::count());
    if (!order.has(row)) {
      if (with_empty) {
        mark_empty(order.receiving, row);
      }
      continue;
    }
    __syncwarp();  // the last row's places are read
    if ((have_come >> i & 1U) == 0) {
      route_nowhere(order.receiving, row);
      continue;
    }
    route(order.receiving, row, of_row);
    __syncwarp();
    if (order.receiving.shared.copies[Group::number()] > 0) {
      copy_row<Rows::Many>(order.receiving, row);
    }
  }
}

// All threads of the block: how many rows come, and where those of each source or expert begin.
inline __device__ void begin_rows(const Receiving& receiving) {
  read_headers(receiving);
  if (!is_by_rank(receiving.exchange)) {
    begin_experts(receiving);
  } else if (thread_of_block() == 0) {
    begin_ranks(receiving);
  }
  __syncthreads();
}

inline __device__ bool shows_all(const Exchange& exchange) {
  return exchange.layout == WEFT_MOE_RANK_MAJOR;
}

// Behind begin_rows.
inline __device__ Order order_of(const Receiving& receiving, bool has_own) {
  const Exchange& exchange = receiving.exchange;
  return {receiving,
          shows_all(exchange) ? exchange.shape.max_tokens
                              : static_cast<std::uint32_t>(receiving.shared.most_rows),
          has_own};
}

// All threads of the grid: the group's rows from number `first` on.
template <Rows kRows>
__device__ void receive_rows(const Order& order, std::uint32_t first) {
  const bool with_empty = shows_all(order.receiving.exchange);
  std::uint32_t i = first;
  for (; kRows == Rows::Many && i < order.count(); i += kAtOnce * Group::count()) {
    take_rows_by_warp(order, i, with_empty);
  }
  for (; kRows == Rows::Few && i < order.count(); i += Group::count()) {
    if (const Row row = order.row(i); order.has(row)) {
      take_row(order.receiving, row);
    } else if (with_empty) {
      mark_empty(order.receiving, row);
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
