// Where received rows end: the four layouts. Every place follows from ids and counts
// (weft/moe/plan.hpp), never from the order of arrival.
//
// Threads: one at a time; constant after construction.
#pragma once

#include <weft/moe.h>
#include <weft/moe/experts.hpp>
#include <weft/moe/layouts.hpp>
#include <weft/moe/row.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "moe/src/cpu/channel.hpp"
#include "moe/src/cpu/routing.hpp"

namespace weft::moe::engine {

// The rows that a channel received, and where those of each rank begin in its pool.
struct Arrivals {
  const Channel& channel;
  const std::vector<std::size_t>& places;

  [[nodiscard]] const std::byte* row(std::size_t rank,
                                     const Arrived& from,
                                     std::size_t slot) const {
    return channel.row(rank, static_cast<std::size_t>(from.row[slot]), places[rank]);
  }
};

class Placement {
 public:
  Placement(const weft_moe_config& config, const ExpertMap& map, const RowLayout& row, int me)
      : layout_(layout_of(config.layout)),
        alignment_(config.alignment),
        max_tokens_(static_cast<std::size_t>(config.max_tokens)),
        by_column_(config.scales_by_column != 0),
        map_(map),
        row_(row),
        me_(me) {}

  // Sets strides, and addresses where rows stay in place.
  void begin(const Channel& channel, weft_moe_rows& rows) const;
  // When the rows of `rank` are here and the others' perhaps not: places them, where that needs no
  // other rank's counts.
  void take(const Arrivals& arrivals,
            Routing& routing,
            std::size_t rank,
            weft_moe_rows& rows) const;
  // Fills `rows` and each Arrived::at from what arrived, and was taken.
  void place(const Arrivals& arrivals, Routing& routing, weft_moe_rows& rows) const;

  [[nodiscard]] bool is_by_rank() const { return layout_.is_by_rank; }

 private:
  void place_in_order(const Arrivals& arrivals, Routing& routing, weft_moe_rows& rows) const;
  void finish_in_place(const Channel& channel, const Routing& routing, weft_moe_rows& rows) const;
  void place_by_expert(const Arrivals& arrivals, Routing& routing, weft_moe_rows& rows) const;
  template <typename Visit>
  void for_lanes_here(const Routing& routing, std::size_t rank, Visit&& visit) const;
  void set_offsets(const std::vector<std::int32_t>& counts, weft_moe_rows& rows) const;
  void copy_row(const std::byte* from, const weft_moe_rows& rows, std::int64_t at) const;
  void copy_scales(const std::byte* from, const weft_moe_rows& rows, std::size_t row) const;
  void show_routes(const Routing& routing,
                   const Arrived& from,
                   std::size_t row,
                   const weft_moe_rows& rows) const;

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(map_.ranks); }

  Layout layout_;
  int alignment_;
  std::size_t max_tokens_;
  bool by_column_;  // scales
  ExpertMap map_;
  RowLayout row_;
  int me_;
};

}  // namespace weft::moe::engine
