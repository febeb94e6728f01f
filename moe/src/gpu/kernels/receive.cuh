// The receive of a dispatch: rows as parcels, rows that are polled, and rows behind a word, to the
// places of places.cuh. Three protocols that share the order in which rows are taken: 700 lines, as
// a reader compares them.
//
// Device code, by all threads of the grid.
#pragma once

#include "moe/src/gpu/kernels/polled.cuh"
#include "moe/src/gpu/kernels/receive_headers.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Parcels
//
// Rows of a dispatch that come as parcels (call.cuh): each 8 bytes stand beside the number of the
// call, so no word tells of them.
//
// Whoever waits for a part of a row looks at it until it has that number. Small rows need no word
// behind a fence.
//
// Device code: all threads of a group together.

// A row that comes as parcels, taken by a group. Each thread waits for its parts of it, keeps the
// first, and loads the others again when all are here. What stands behind the payload is kept in
// shared memory by a group of several warps; a warp alone loads that again, too.
template <typename Path>
class ParcelRow {
 public:
  __device__ ParcelRow(const Receiving<Path>& receiving, const Row& row)
      : receiving_(receiving),
        row_(row),
        parcels_(mine(receiving.exchange) +
                 shape().parcels_at(receiving.number(), row.source, row.slot)),
        units_(static_cast<std::uint32_t>(shape().row.payload_bytes) / kUnit),
        all_units_(static_cast<std::uint32_t>(shape().row.used_bytes()) / kUnit) {}

  // The group's barrier, too: what it kept of the last row may be overwritten before it. False if
  // the source is missing.
  __device__ bool await() {
    bool has_come = true;
#pragma unroll 1
    for (std::uint32_t unit = Group::thread(); unit < all_units_;
         unit += Group::size<Path::kRows>()) {
      Vector16 data{};
      has_come = has_come && wait_for(
                                 receiving_.exchange, receiving_.entered, row_.source,
                                 [&] { return load(unit, data); }, never_gives_up);
      if (Path::kRows == Rows::BlockPerRow && unit >= units_) {
        at<Vector16>(receiving_.tail(), 0)[unit - units_] = data;
      }
      if (unit == Group::thread()) {
        first_ = data;
      }
    }
    return Group::all<Path::kRows>(has_come);
  }

  // One warp, behind await().
  __device__ Routes routes() const {
    return read_routes(receiving_, [&](std::size_t byte) { return word(byte); });
  }

  // To all places in x that the group's list of copies names.
  __device__ void copy() const {
    const std::int32_t copies = receiving_.shared.copies[Group::number()];
    for_loaded(copies > 0 ? units_ : 0, [&](std::uint32_t unit, const Vector16& data) {
      store_copies(receiving_, copies, unit, data);
    });
    if (copies > 0) {
      copy_scales(receiving_,
                  [&](std::size_t byte) { return word(shape().row.scales_at() + byte); });
    }
  }

  // Where rows stay, in a layout in place.
  __device__ void copy_to_slot() const {
    for_loaded(all_units_, [&](std::uint32_t unit, const Vector16& data) {
      device::store_data(at<Vector16>(row_.memory, 0) + unit, data);
    });
  }

 private:
  const __device__ Shape& shape() const { return receiving_.exchange.shape; }

  __device__ bool load(std::uint32_t unit, Vector16& data) const {
    return load_from_parcels(parcels_, unit, receiving_.number(), data);
  }

  // visit(unit, what is there), for the first `units` of the row.
  template <typename Visit>
  __device__ void for_loaded(std::uint32_t units, Visit&& visit) const {
#pragma unroll 1
    for (std::uint32_t unit = Group::thread(); unit < units; unit += Group::size<Path::kRows>()) {
      Vector16 data = first_;
      if (unit != Group::thread()) {
        while (!load(unit, data)) {
        }
      }
      visit(unit, data);
    }
  }

  // 4 bytes behind the payload.
  __device__ std::uint32_t word(std::size_t byte) const {
    if constexpr (Path::kRows == Rows::BlockPerRow) {
      return *at<std::uint32_t>(receiving_.tail(), byte - shape().row.scales_at());
    }
    const std::uint32_t parcel = parcel_of(static_cast<std::uint32_t>(byte / kUnit),
                                           static_cast<std::uint32_t>(byte % kUnit / 8));
    std::uint64_t data = 0;
    while (!has_parcel(parcels_ + parcel * kParcel, receiving_.number(), data)) {
    }
    return static_cast<std::uint32_t>(data >> (byte % 8 * 8));
  }

  const Receiving<Path>& receiving_;
  Row row_;
  const std::byte* parcels_;
  std::uint32_t units_;      // of the payload
  std::uint32_t all_units_;  // with what stands behind it
  Vector16 first_{};         // this thread's
};

// A group.
template <typename Path>
__device__ void take_parcels(const Receiving<Path>& receiving, const Row& row) {
  ParcelRow<Path> parcels(receiving, row);
  const bool has_come = parcels.await();
  const bool is_in_place = receiving.shows_all();
  const bool routes_it = has_come && Group::warp() == 0;
  const Routes routes = routes_it ? parcels.routes() : Routes{};
  if (routes_it && !is_in_place) {
    route(receiving, row, routes);
  } else if (!has_come && Group::warp() == 0) {
    route_nowhere(receiving, row);
  }
  Group::sync<Path::kRows>();
  if (has_come && is_in_place) {
    parcels.copy_to_slot();
  } else if (has_come) {
    parcels.copy();
  }
  Group::sync<Path::kRows>();
  if (routes_it && is_in_place) {
    route(receiving, row, routes);  // behind copy_to_slot: it writes to the slot
  }
}

// ---- Polled rows
//
// Rows of a dispatch that are polled (polled.cuh): takers take those of each source as they come.
//
// Device code: all threads of a taker together. Its first warp takes what stands behind the
// payload, and works out where the row goes. Rank layouts need no more than the headers for that,
// so there the payload goes on its way at once.

// A row, and what a thread takes of it.
template <typename Path>
class PolledRow {
 public:
  __device__ PolledRow(const Receiving<Path>& receiving, const Row& row)
      : receiving_(receiving),
        row_(row),
        from_(at<Vector16>(mine(receiving.exchange),
                           PolledPlaces{shape()}.row_at(receiving.number(), row.source, row.slot))),
        units_(static_cast<std::uint32_t>(shape().row.payload_bytes) / kUnit) {}

  // The first warp: what stands behind the payload, for the taker's list of copies and the plan.
  __device__ void route_it() {
    const std::uint32_t all = static_cast<std::uint32_t>(shape().row.used_bytes()) / kUnit;
    bool has_come = true;
#pragma unroll 1
    for (std::uint32_t unit = units_ + lane(); unit < all; unit += kWarp) {
      Vector16 data[1];
      take(unit, 0, data);
      has_come = has_come && !is_absent();
      at<Vector16>(receiving_.tail(), 0)[unit - units_] = data[0];
      if (receiving_.shows_all()) {
        device::store_data(at<Vector16>(row_.memory, 0) + unit, data[0]);
      }
    }
    has_come = __all_sync(kAllLanes, has_come ? 1 : 0) != 0;
    // The tail is here; in a slot that is shown, ids are written over those that came.
    __syncwarp();
    if (has_come) {
      route(receiving_, row_,
            read_routes(receiving_, [&](std::size_t byte) { return word(byte); }));
    } else {
      route_nowhere(receiving_, row_);
    }
  }

  // store(unit, what came), for the payload. Before the first of them, when what this thread stores
  // first is here, begin().
  template <typename Begin, typename Store>
  __device__ void for_payload(Begin&& begin, Store&& store) {
    constexpr std::uint32_t kAtOnce = 4;
    Vector16 data[kAtOnce];
    take(Taker::thread(), Taker::size(), data);
    begin();
#pragma unroll 1
    for (std::uint32_t first = Taker::thread(); first < units_;) {
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        if (first + i * Taker::size() < units_) {
          store(first + i * Taker::size(), data[i]);
        }
      }
      first += kAtOnce * Taker::size();
      if (first < units_) {
        take(first, Taker::size(), data);
      }
    }
  }

  // Behind route_it and a barrier.
  __device__ void copy_its_scales() const {
    copy_scales(receiving_, [&](std::size_t byte) { return word(shape().row.scales_at() + byte); });
  }

 private:
  const __device__ Shape& shape() const { return receiving_.exchange.shape; }

  // 4 bytes behind the payload.
  __device__ std::uint32_t word(std::size_t byte) const {
    return *at<std::uint32_t>(receiving_.tail(), byte - shape().row.scales_at());
  }

  // Waits for units from `first` on, `step` apart, of the payload (`step` 0: for that one), and
  // puts kEmptySlot where they were.
  template <std::uint32_t kCount>
  __device__ void take(std::uint32_t first, std::uint32_t step, Vector16 (&data)[kCount]) {
    const auto is_unit = [&](std::uint32_t i) { return step == 0 || first + i * step < units_; };
    const auto place = [&](std::uint32_t i) { return from_ + first + i * step; };
#pragma unroll
    for (std::uint32_t i = 0; i < kCount; ++i) {
      data[i] = is_unit(i) ? load_polled(place(i)) : Vector16{};
    }
    await_polled(
        data, [&](std::uint32_t /*i*/) { return !is_given_up_; }, place,
        [&](std::uint32_t /*i*/, std::uint64_t start) { return look_around_for_it(start); });
#pragma unroll
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (is_unit(i)) {
        if (is_given_up_) {
          data[i] = has_word() ? load_polled(place(i)) : Vector16{};
        }
        store_polled(place(i), empty_slot());
      }
    }
  }

  __device__ bool has_word() const {
    return device::load_relaxed(at<std::uint64_t>(
               mine(receiving_.exchange), shape().arrived_at(receiving_.number(), row_.source,
                                                             row_.slot))) == receiving_.number();
  }

  // Its source does not come.
  __device__ bool is_absent() const { return is_given_up_ && !has_word(); }

  // Gives it up if its word is here, or if its source does not come.
  __device__ std::uint64_t look_around_for_it(std::uint64_t start) {
    is_given_up_ = has_word();
    if (!is_given_up_) {
      start = look_around(receiving_.exchange, receiving_.entered.step, receiving_.number(),
                          row_.source, start);
      is_given_up_ = start == 0;
    }
    if (is_given_up_) {
      // SYNC moe-word (pairs with moe/src/gpu/kernels/copy_engine.cuh): what this thread loads
      // again, if the word is here.
      device::fence_acquire();
    }
    return start;
  }

  const Receiving<Path>& receiving_;
  Row row_;
  Vector16* from_;
  std::uint32_t units_;       // of the payload
  bool is_given_up_ = false;  // what is still kEmptySlot was sent so, or will not come
};

// A taker.
template <typename Path>
__device__ void take_polled(const Receiving<Path>& receiving, const Row& row) {
  PolledRow<Path> polled(receiving, row);
  if (Taker::warp() == 0) {
    polled.route_it();
  }
  if constexpr (Path::kByRank) {
    const std::size_t bytes = receiving.exchange.shape.row.payload_bytes;
    const auto place = static_cast<std::size_t>(receiving.shared.begin[row.source]) + row.slot;
    auto* to = reinterpret_cast<Vector16*>(
        receiving.shows_all() ? row.memory : receiving.call.rows + place * bytes);
    polled.for_payload([] {}, [&](std::uint32_t unit,
                                  const Vector16& data) { device::store_data(to + unit, data); });
    Taker::sync();
  } else {
    std::int32_t copies = 0;
    polled.for_payload(
        [&] {
          Taker::sync();
          copies = receiving.shared.copies[Taker::number()];
        },
        [&](std::uint32_t unit, const Vector16& data) {
          store_copies(receiving, copies, unit, data);
        });
  }
  if (!receiving.shows_all()) {
    polled.copy_its_scales();
  }
  Taker::sync();  // the tail and the list of copies are read
}

// ---- Rows behind a word, and the order of all
//
// The receive of a dispatch. Every block works out where each expert's rows begin
// (receive_headers.cuh); then each group waits for rows and brings them to their places. In
// WEFT_MOE_RANK_MAJOR rows stay where they are, but for those that came for all of a node. Rows of
// this rank itself may have been laid out by the send (send.cuh).
//
// row of x = where its expert begins + rows of lower sources for it + its place among those of its
// source

// A warp, behind begin_row of its pipeline.
template <typename Path>
__device__ void copy_row_by_bulk(const Receiving<Path>& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const Dispatch& call = receiving.call;
  const std::int32_t* to = receiving.shared.to[Group::number()];
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  if (!receiving.by_bulk.scales) {
    copy_scales(receiving, [&](std::size_t byte) {  // while the payload is on its way
      return load_word(row.memory, shape.row.scales_at() + byte);
    });
  }
  if (lane() == 0) {
    const auto payload = static_cast<std::uint32_t>(shape.row.payload_bytes);
    receiving.pipeline().store_row(
        receiving.by_bulk.row, row.memory,
        [&](const std::byte* piece, std::uint32_t begin, std::uint32_t bytes) {
          const std::uint32_t of_payload = begin < payload ? min(bytes, payload - begin) : 0;
          for (std::int32_t copy = 0; copy < copies; ++copy) {
            const auto place = static_cast<std::size_t>(to[copy]);
            if (of_payload > 0) {
              store_bulk(call.rows + place * payload + begin, piece, of_payload);
            }
            if (bytes > of_payload) {
              store_bulk(
                  call.row_scales + place * shape.row.scale_bytes + (begin + of_payload - payload),
                  piece + of_payload, bytes - of_payload);
            }
          }
        });
  }
}

// A group of several warps.
template <typename Path>
__device__ void copy_row(const Receiving<Path>& receiving, const Row& row) {
  const Shape& shape = receiving.exchange.shape;
  const std::int32_t copies = receiving.shared.copies[Group::number()];
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  for_units_loaded<Rows::BlockPerRow>(at<Vector16>(row.memory, 0), units,
                                      [&](std::uint32_t unit, const Vector16& loaded) {
                                        store_copies(receiving, copies, unit, loaded);
                                      });
  copy_scales(receiving, [&](std::size_t byte) {
    return load_word(row.memory, shape.row.scales_at() + byte);
  });
}

// One thread: whether the row is here.
template <typename Path>
__device__ bool await_row(const Receiving<Path>& receiving, const Row& row) {
  const KernelArguments& exchange = receiving.exchange;
  const std::uint32_t slot = is_remote(exchange, row.source) ? 0 : row.slot;
  const auto* word =
      at<std::uint64_t>(rows_from(exchange, row.source),
                        exchange.shape.arrived_at(receiving.number(), row.source, slot));
  const bool has_come = wait_for(
      exchange, receiving.entered, row.source,
      [&] { return device::load_relaxed(word) == receiving.number(); }, [] { return false; });
  // SYNC moe-word (pairs with moe/src/gpu/kernels/copy_engine.cuh): what the group reads behind its
  // barrier.
  device::fence_acquire();
  return has_come;
}

template <typename Path>
__device__ void take_row(const Receiving<Path>& receiving, const Row& row) {
  const std::uint32_t group = Group::number();
  if (Group::thread() == 0) {
    receiving.shared.has_come[group] = await_row(receiving, row);
  }
  Group::sync<Rows::BlockPerRow>();  // also: the last row's places are read
  if (Group::warp() == 0) {
    if (receiving.shared.has_come[group]) {
      route(receiving, row, routes_of(receiving, row));
    } else {
      route_nowhere(receiving, row);
    }
  }
  Group::sync<Rows::BlockPerRow>();
  if (receiving.shared.copies[group] > 0) {
    copy_row(receiving, row);
  }
}

// A warp: a row that stays where it is.
template <typename Path>
__device__ void take_in_place(const Receiving<Path>& receiving, const Row& row) {
  bool has_come = false;
  if (lane() == 0) {
    has_come = await_row(receiving, row);
  }
  // What the first thread acquired, all may read: a shuffle orders no memory (PTX ISA, shfl.sync).
  __syncwarp();
  has_come = __shfl_sync(kAllLanes, has_come ? 1 : 0, 0) != 0;
  if (has_come) {
    route_to_rank(receiving, row, routes_of(receiving, row));
  } else {
    note_absent(receiving, row);
  }
}

// Row number `index` of all, slot by slot; `slots` of each source.
template <typename Path>
struct Order {
  const Receiving<Path>& receiving;
  std::uint32_t slots;
  bool has_own;  // rows of this rank itself, too

  __device__ std::uint32_t sources() const {
    return receiving.exchange.shape.ranks() - (has_own ? 0 : 1);
  }

  __device__ std::uint32_t count() const { return slots * sources(); }

  __device__ Row row(std::uint32_t index) const {
    const KernelArguments& exchange = receiving.exchange;
    const std::uint32_t slot = slot_of(exchange, index, sources());
    std::uint32_t source = index - slot * sources();
    source += !has_own && source >= static_cast<std::uint32_t>(exchange.me) ? 1 : 0;
    const Shape& shape = exchange.shape;
    const std::size_t offset = arrives_apart(exchange, source)
                                   ? Staging{shape}.shared_row_at(receiving.number(), source, slot)
                                   : shape.row_at(receiving.number(), source, slot);
    return {rows_from(exchange, source) + offset, source, slot};
  }

  __device__ bool is_empty(const Row& row) const {
    return row.slot >= static_cast<std::uint32_t>(receiving.shared.rows[row.source]);
  }

  // And does not come as parcels: those are taken apart (take_all_parcels).
  __device__ bool has(const Row& row) const {
    return !is_empty(row) && !receiving.shared.as_parcels[row.source];
  }

  __device__ bool has_parcels(const Row& row) const {
    return !is_empty(row) && receiving.shared.as_parcels[row.source];
  }
};

// Rows that a warp waits for at once.
inline constexpr std::uint32_t kAtOnce = kRowsPerFence<Rows::WarpPerRow>;

// A warp: rows `first` to `first` + kAtOnce - 1. What they say of themselves is on its way for all
// together.
template <typename Path>
__device__ void take_rows_by_warp(const Order<Path>& order, std::uint32_t first, bool with_empty) {
  const std::uint32_t mine = first + lane();
  bool has_come = false;
  if (lane() < kAtOnce && mine < order.count()) {
    if (const Row row = order.row(mine); order.has(row)) {
      has_come = await_row(order.receiving, row);
    }
  }
  __syncwarp();
  const unsigned have_come = __ballot_sync(kAllLanes, has_come);
  if (lane() == 0) {
    fence_global_for_bulk();
  }
  Routes routes[kAtOnce];
#pragma unroll
  for (std::uint32_t i = 0; i < kAtOnce; ++i) {
    if ((have_come >> i & 1U) != 0) {
      routes[i] = routes_of(order.receiving, order.row(first + i));
    }
  }
#pragma unroll 1
  for (std::uint32_t i = 0; i < kAtOnce && first + i < order.count(); ++i) {
    const Routes of_row = routes[0];
#pragma unroll
    for (std::uint32_t later = 1; later < kAtOnce; ++later) {
      routes[later - 1] = routes[later];
    }
    const Row row = order.row(first + i);
    if (!order.has(row)) {
      if (with_empty && order.is_empty(row)) {
        mark_empty(order.receiving, row);
      }
      continue;
    }
    __syncwarp();  // the last row's places are read
    if ((have_come >> i & 1U) == 0) {
      route_nowhere(order.receiving, row);
      continue;
    }
    if (lane() == 0 && !order.receiving.shows_all()) {
      order.receiving.pipeline().begin_row(order.receiving.by_bulk.row, row.memory);
    }
    route(order.receiving, row, of_row);
    __syncwarp();
    if (!order.receiving.shows_all()) {
      copy_row_by_bulk(order.receiving, row);
    }
  }
}

// Behind begin_rows.
template <typename Path>
__device__ Order<Path> order_of(const Receiving<Path>& receiving, bool has_own) {
  const KernelArguments& exchange = receiving.exchange;
  return {receiving,
          receiving.shows_all() ? exchange.shape.max_tokens
                                : static_cast<std::uint32_t>(receiving.shared.most_rows),
          has_own};
}

// All threads of the grid, where rows stay in place: nothing is copied, so each warp has rows of
// its own. visit(row); and of slots without one, that there is none.
template <typename Path, typename Visit>
__device__ void for_rows_in_place(const Order<Path>& order, Visit&& visit) {
  if (!Readers<Path>::have_this_thread()) {
    return;
  }
#pragma unroll 1
  for (std::uint32_t i = Readers<Path>::warp_of_grid(order.receiving.exchange.shape.ranks());
       i < order.count(); i += Readers<Path>::warps_of_grid()) {
    const Row row = order.row(i);
    const bool is_apart = arrives_apart(order.receiving.exchange, row.source);
    const bool is_empty = is_apart ? static_cast<std::int32_t>(row.slot) >=
                                         rows_for_this_rank(order.receiving, row.source)
                                   : order.is_empty(row);
    if (is_empty) {
      mark_empty(order.receiving, row);
    } else if (!is_apart) {
      visit(row);
    }
  }
}

// All threads of the grid, where rows stay in place: those that came for all of a node are copied
// to where they are shown.
template <typename Path>
__device__ void take_rows_apart(const Receiving<Path>& receiving, bool has_own) {
  const Order<Path> order{receiving, static_cast<std::uint32_t>(receiving.shared.most_rows),
                          has_own};
#pragma unroll 1
  for (std::uint32_t i = Group::index_of_receiver(receiving.exchange.shape.ranks());
       i < order.count(); i += Group::count()) {
    const Row row = order.row(i);
    if (arrives_apart(receiving.exchange, row.source) && order.has(row)) {
      take_row(receiving, row);
    }
  }
}

// All threads of the grid: all rows but those that come as parcels; and of slots without a row,
// that there is none.
template <typename Path>
__device__ void take_rows(const Order<Path>& order) {
  const bool with_empty = order.receiving.shows_all();
  if constexpr (Path::kRows == Rows::WarpPerRow) {
    std::uint32_t& drawn = order.receiving.shared.drawn;
    for (std::uint32_t first = draw<kAtOnce, kAtOnce>(drawn); first < order.count();
         first = draw<kAtOnce, kAtOnce>(drawn)) {
      take_rows_by_warp(order, first, with_empty);
    }
  } else {
#pragma unroll 1
    for (std::uint32_t i = Group::index_of_receiver(order.receiving.exchange.shape.ranks());
         !with_empty && i < order.count(); i += Group::count()) {
      if (const Row row = order.row(i); order.has(row)) {
        take_row(order.receiving, row);
      }
    }
    if (with_empty) {
      for_rows_in_place(order, [&](const Row& row) {
        if (order.has(row)) {
          take_in_place(order.receiving, row);
        }
      });
    }
  }
}

// The group's rows that come as parcels.
template <typename Path>
__device__ void take_all_parcels(const Order<Path>& order) {
  const Shape& shape = order.receiving.exchange.shape;
  const std::uint32_t count = min(order.slots, shape.parcel_slots) * order.sources();
#pragma unroll 1
  for (std::uint32_t i = Group::index_of_receiver(shape.ranks()); i < count; i += Group::count()) {
    if (const Row row = order.row(i); order.has_parcels(row)) {
      take_parcels(order.receiving, row);
    }
  }
}

// The group's rows, which are polled.
template <typename Path>
__device__ void take_all_polled(const Order<Path>& order) {
  const Receiving<Path>& receiving = order.receiving;
  if (receiving.shows_all()) {
    for_rows_in_place(order, [](const Row& /*row*/) {});
  }
  const std::uint32_t count =
      static_cast<std::uint32_t>(receiving.shared.most_rows) * order.sources();
#pragma unroll 1
  for (std::uint32_t i = Taker::index(receiving.exchange.shape.ranks()); i < count;
       i += Taker::count()) {
    if (const Row row = order.row(i); !order.is_empty(row)) {
      take_polled(receiving, row);
    }
  }
}

// What take_other_rows needs of Receiving and Order; by value, as what is referred to stands in
// memory for all of the kernel.
struct OtherRows {
  ReceiveMemory* shared;
  DispatchPipeline* pipelines;
  std::byte* tails;
  std::uint64_t number;
  bool has_own;
};

// What this rank does not send may come from others: apart from the code that most calls run.
template <typename Path>
__device__ __noinline__ void take_other_rows(const KernelArguments& exchange,
                                             const Dispatch& call,
                                             const OtherRows rows) {
  const Receiving<Path> receiving{
      exchange, call, *rows.shared, {WEFT_MOE_DISPATCH, rows.number}, rows.pipelines, rows.tails};
  const Order<Path> order = order_of(receiving, rows.has_own);
  if constexpr (Path::kParcels) {
    take_rows(order);
  } else {
    take_all_parcels(order);
  }
}

template <typename Path>
__device__ void receive_rows(const Order<Path>& order) {
  const Receiving<Path>& receiving = order.receiving;
  const auto take_others = [&] {
    take_other_rows<Path>(receiving.exchange, receiving.call,
                          {&receiving.shared, receiving.pipelines, receiving.tails,
                           receiving.number(), order.has_own});
  };
  if constexpr (Path::kPolls) {
    take_all_polled(order);
  } else if constexpr (Path::kParcels) {
    take_all_parcels(order);
    if (receiving.shared.some_as_words) {
      take_others();
    } else if (receiving.shows_all()) {
      for_rows_in_place(order, [](const Row& /*row*/) {});
    }
  } else {
    take_rows(order);
    if (receiving.readers_take_rows()) {
      __syncthreads();
    }
    if constexpr (kBetweenNodes && Path::kByRank) {
      if (receiving.shows_all() && receiving.exchange.shape.shares_apart) {
        take_rows_apart(receiving, order.has_own);
      }
    }
    if (!kBetweenNodes && receiving.shared.some_as_parcels) {
      Group::sync<Path::kRows>();  // the last row's places are read
      take_others();
    }
  }
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
