// The receive of a dispatch. Every block works out where each expert's rows begin (receive_headers.cuh); then each group
// waits for rows and brings them to their places. In WEFT_MOE_RANK_MAJOR rows stay where they are. Rows of this rank itself
// may have been laid out by the send (send_rows.cuh).
//
//   row of x = where its expert begins + rows of lower sources for it + its place among those of its source
#pragma once

#include "src/gpu/moe/route_rows.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// A warp, behind begin_row of its belt.
inline __device__ void copy_row_by_bulk(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const Dispatch& call = receiving.call;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  copy_scales(receiving, [&](std::size_t byte) {  // while the payload is on its way
    return load_word(row.memory, shape.row.scales_at() + byte);
  });
  if (lane() == 0) {
    receiving.belt().copy_row(receiving.pieces(), row.memory,
                              static_cast<std::uint32_t>(receiving.shared.copies[Group::number()]),
                              [&](std::uint32_t copy) {
                                return call.rows +
                                       static_cast<std::size_t>(to[copy]) * shape.row.payload_bytes;
                              });
  }
}

// A group of several warps.
inline __device__ void copy_row(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const Dispatch& call = receiving.call;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  for_units_loaded<Rows::Few>(
      at<Vector16>(row.memory, 0), units, [&](std::uint32_t unit, const Vector16& loaded) {
#pragma unroll 1
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
  // SYNC moe-word (pairs with src/gpu/moe/words.cuh): what the group reads behind its barrier.
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
    copy_row(receiving, row);
  }
}

// A warp; WEFT_MOE_RANK_MAJOR: slots without a row name no expert.
inline __device__ void mark_empty(const Receiving& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  if (lane() < shape.topk) {
    *at<std::int32_t>(row.memory, shape.row.ids_at() + lane() * 4) = -1;
  }
}

// A warp: a row that stays where it is.
inline __device__ void take_in_place(const Receiving& receiving, const Row& row) {
  bool has_come = false;
  if (lane() == 0) {
    has_come = await_row(receiving, row);
  }
  __syncwarp();  // what the first thread acquired, all may read: a shuffle orders no memory (PTX ISA, shfl.sync)
  has_come = __shfl_sync(kAllLanes, has_come ? 1 : 0, 0) != 0;
  if (has_come) {
    route_to_rank(receiving, row, routes_of(receiving.exchange, row));
  } else {
    note_absent(receiving, row);
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
  if (lane() == 0) {
    fence_for_bulk();
  }
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
    if (lane() == 0 && !shows_all(order.receiving.exchange)) {
      order.receiving.belt().begin_row(order.receiving.pieces(), row.memory);
    }
    route(order.receiving, row, of_row);
    __syncwarp();
    if (!shows_all(order.receiving.exchange)) {
      copy_row_by_bulk(order.receiving, row);
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
  if constexpr (kRows == Rows::Few) {
#pragma unroll 1
    for (; !with_empty && i < order.count(); i += Group::count()) {
      if (const Row row = order.row(i); order.has(row)) {
        take_row(order.receiving, row);
      }
    }
    // Nothing is copied: each warp takes rows of its own.
#pragma unroll 1
    for (i += Group::warp() * Group::count(); with_empty && i < order.count();
         i += Group::warps() * Group::count()) {
      if (const Row row = order.row(i); order.has(row)) {
        take_in_place(order.receiving, row);
      } else {
        mark_empty(order.receiving, row);
      }
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
