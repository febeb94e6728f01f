// Rows of a dispatch that are polled (polled.cuh): takers take those of each source as they come.
//
// Device code: all threads of a taker together. Its first warp takes what stands behind the payload, and works out where the row goes.
// Rank layouts need no more than the headers for that, so there the payload goes on its way at once.
#pragma once

#include "src/gpu/moe/polled.cuh"
#include "src/gpu/moe/route_rows.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

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
    __syncwarp();  // the tail is here; in a slot that is shown, ids are written over those that came
    if (has_come) {
      route(receiving_, row_,
            read_routes(receiving_, [&](std::size_t byte) { return word(byte); }));
    } else {
      route_nowhere(receiving_, row_);
    }
  }

  // store(unit, what came), for the payload. Before the first of them, when what this thread stores first is here, begin().
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

  // Waits for units from `first` on, `step` apart, of the payload (`step` 0: for that one), and puts kNothing where they were.
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
        store_polled(place(i), nothing());
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
      // SYNC moe-word (pairs with src/gpu/moe/words.cuh): what this thread loads again, if the word is here.
      device::fence_acquire();
    }
    return start;
  }

  const Receiving<Path>& receiving_;
  Row row_;
  Vector16* from_;
  std::uint32_t units_;       // of the payload
  bool is_given_up_ = false;  // what is still kNothing was sent so, or will not come
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

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
