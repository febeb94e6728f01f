// Rows of a dispatch that come as parcels (exchange.cuh): each 8 bytes stand beside the number of the call, so no word tells of them.
//
// Whoever waits for a part of a row looks at it until it has that number. Small rows need no word behind a fence.
//
// Device code: all threads of a group together.
#pragma once

#include "src/gpu/moe/route_rows.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// A row that comes as parcels, taken by a group. Each thread waits for its parts of it, keeps the first, and loads the others again when all are
// here. What stands behind the payload is kept in shared memory by a group of several warps; a warp alone loads that again, too.
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

  // The group's barrier, too: what it kept of the last row may be overwritten before it. False if the source is missing.
  __device__ bool await() {
    bool has_come = true;
#pragma unroll 1
    for (std::uint32_t unit = Group::thread(); unit < all_units_;
         unit += Group::size<Path::kRows>()) {
      Vector16 data{};
      has_come = has_come && wait_for(
                                 receiving_.exchange, receiving_.entered, row_.source,
                                 [&] { return load(unit, data); }, never_gives_up);
      if (Path::kRows == Rows::Few && unit >= units_) {
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

  // Where rows stay in WEFT_MOE_RANK_MAJOR.
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
    if constexpr (Path::kRows == Rows::Few) {
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

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
