#include "moe/src/cpu/placement.hpp"

#include <algorithm>
#include <cstring>

namespace weft::moe::engine {

void Placement::place(const Arrivals& arrivals, Routing& routing, weft_moe_rows& rows) const {
  if (layout_.is_in_place) {
    finish_in_place(arrivals.channel, routing, rows);
  } else if (is_by_rank()) {
    place_in_order(arrivals, routing, rows);
  } else {
    place_by_expert(arrivals, routing, rows);
  }
}

void Placement::begin(const Channel& channel, weft_moe_rows& rows) const {
  const bool is_in_place = layout_.is_in_place;
  const std::size_t lanes = is_by_rank() ? row_.topk : 1;
  rows.x_stride = is_in_place ? row_.bytes() : row_.payload_bytes;
  rows.scales_stride = is_in_place ? row_.bytes() : by_column_ ? 4 : row_.scale_bytes;
  rows.ids_stride = is_in_place ? row_.bytes() : lanes * sizeof(std::int32_t);
  rows.weights_stride = is_in_place ? row_.bytes() : lanes * sizeof(float);
  if (is_in_place) {
    std::byte* pool = channel.pool_of(static_cast<std::size_t>(me_), 0);
    rows.x = pool;
    rows.scales = pool + row_.scales_at();
    rows.ids = reinterpret_cast<std::int32_t*>(pool + row_.ids_at());
    rows.weights = reinterpret_cast<float*>(pool + row_.weights_at());
  }
}

void Placement::copy_row(const std::byte* from, const weft_moe_rows& rows, std::int64_t at) const {
  const auto row = static_cast<std::size_t>(at);
  std::memcpy(static_cast<std::byte*>(rows.x) + row * row_.payload_bytes, from, row_.payload_bytes);
  if (row_.scale_bytes > 0) {
    copy_scales(from + row_.scales_at(), rows, row);
  }
}

void Placement::copy_scales(const std::byte* from,
                            const weft_moe_rows& rows,
                            std::size_t row) const {
  auto* scales = static_cast<std::byte*>(rows.scales);
  if (!by_column_) {
    std::memcpy(scales + row * row_.scale_bytes, from, row_.scale_bytes);
    return;
  }
  constexpr std::size_t kWord = 4;
  const auto column = static_cast<std::uint32_t>(ranks() * max_tokens_);
  const std::size_t words = row_.scale_bytes / kWord;
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t to = word_by_column(static_cast<std::uint32_t>(row), i, words, column);
    std::memcpy(scales + to * kWord, from + i * kWord, kWord);
  }
}

// ids and weights of one row of a rank layout, as the reader sees them: only this rank's experts,
// by their numbers here.
void Placement::show_routes(const Routing& routing,
                            const Arrived& from,
                            std::size_t row,
                            const weft_moe_rows& rows) const {
  const auto at = static_cast<std::size_t>(from.at[row]);
  auto* ids = reinterpret_cast<std::int32_t*>(reinterpret_cast<std::byte*>(rows.ids) +
                                              at * rows.ids_stride);
  auto* weights = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(rows.weights) +
                                           at * rows.weights_stride);
  const Route route = routing.route(from, row);
  for (std::int32_t lane = 0; lane < route.topk; ++lane) {
    const bool is_ours = map_.owns(me_, route.ids[lane]);
    ids[lane] = is_ours ? map_.local_of(route.ids[lane]) : -1;
    weights[lane] = from.weights[row * row_.topk + static_cast<std::size_t>(lane)];
  }
}

// Rows that stay in place lie there already, but for the first ones of another node, and those that
// a whole node reads.
void Placement::take(const Arrivals& arrivals,
                     Routing& routing,
                     std::size_t rank,
                     weft_moe_rows& rows) const {
  if (!layout_.is_in_place) {
    return;
  }
  Arrived& from = routing.arrived[rank];
  std::byte* pool = arrivals.channel.pool_of(static_cast<std::size_t>(me_), rank * max_tokens_);
  from.at.resize(from.rows);
  for (std::size_t slot = 0; slot < from.rows; ++slot) {
    from.at[slot] = static_cast<std::int64_t>(rank * max_tokens_ + slot);
    const std::byte* row = arrivals.row(rank, from, slot);
    if (std::byte* place = pool + slot * row_.bytes(); place != row) {
      std::memcpy(place, row, row_.bytes());
    }
    show_routes(routing, from, slot, rows);
  }
}

void Placement::finish_in_place(const Channel& channel,
                                const Routing& routing,
                                weft_moe_rows& rows) const {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const std::size_t count = routing.arrived[rank].rows;
    std::byte* pool = channel.pool_of(static_cast<std::size_t>(me_), rank * max_tokens_);
    rows.offsets[rank] = static_cast<std::int64_t>(rank * max_tokens_);
    rows.counts[rank] = static_cast<std::int32_t>(count);
    for (std::size_t slot = count; slot < max_tokens_; ++slot) {
      std::memset(pool + slot * row_.bytes() + row_.ids_at(), 0xFF,
                  row_.topk * sizeof(std::int32_t));
    }
  }
  rows.offsets[ranks()] = static_cast<std::int64_t>(ranks() * max_tokens_);
}

void Placement::place_in_order(const Arrivals& arrivals,
                               Routing& routing,
                               weft_moe_rows& rows) const {
  std::int64_t next = 0;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    Arrived& from = routing.arrived[rank];
    rows.offsets[rank] = next;
    rows.counts[rank] = static_cast<std::int32_t>(from.rows);
    from.at.resize(from.rows);
    for (std::size_t slot = 0; slot < from.rows; ++slot) {
      from.at[slot] = next++;
      copy_row(arrivals.row(rank, from, slot), rows, from.at[slot]);
      show_routes(routing, from, slot, rows);
    }
  }
  rows.offsets[ranks()] = next;
}

// The lanes of the rows of `rank` that are for experts here, in the order of slots, then lanes.
template <typename Visit>
void Placement::for_lanes_here(const Routing& routing, std::size_t rank, Visit&& visit) const {
  const Arrived& from = routing.arrived[rank];
  for (std::size_t slot = 0; slot < from.rows; ++slot) {
    const Route route = routing.route(from, slot);
    for (std::int32_t lane = 0; lane < route.topk; ++lane) {
      if (map_.owns(me_, route.ids[lane])) {
        visit(slot, route, lane);
      }
    }
  }
}

void Placement::place_by_expert(const Arrivals& arrivals,
                                Routing& routing,
                                weft_moe_rows& rows) const {
  const std::int32_t local = map_.count_of(me_);
  const std::int32_t first = map_.first_of(me_);
  std::vector<std::int32_t> counts(ranks() * static_cast<std::size_t>(local));  // [rank][expert]
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    for_lanes_here(routing, rank, [&](std::size_t /*slot*/, const Route& route, std::int32_t lane) {
      const auto expert = static_cast<std::size_t>(route.ids[lane] - first);
      counts[rank * static_cast<std::size_t>(local) + expert] += route.is_first(lane) ? 1 : 0;
    });
  }
  set_offsets(counts, rows);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    Arrived& from = routing.arrived[rank];
    from.at.assign(from.rows * row_.topk, -1);
    std::vector<std::int64_t> next(static_cast<std::size_t>(local));
    for (std::int32_t expert = 0; expert < local; ++expert) {
      next[static_cast<std::size_t>(expert)] =
          rows.offsets[expert] +
          first_position(counts.data(), local, static_cast<std::int32_t>(rank), expert);
    }
    for_lanes_here(routing, rank, [&](std::size_t slot, const Route& route, std::int32_t lane) {
      std::int64_t* at = &from.at[slot * row_.topk];
      const float weight = from.weights[slot * row_.topk + static_cast<std::size_t>(lane)];
      if (!route.is_first(lane)) {
        at[lane] = at[route.first_lane(lane)];
        rows.weights[at[lane]] += weight;
        return;
      }
      at[lane] = next[static_cast<std::size_t>(route.ids[lane] - first)]++;
      rows.weights[at[lane]] = weight;
      copy_row(arrivals.row(rank, from, slot), rows, at[lane]);
    });
  }
}

// How many rows each expert has, and where they begin; zeros where compact experts leave gaps.
void Placement::set_offsets(const std::vector<std::int32_t>& counts, weft_moe_rows& rows) const {
  const std::int32_t local = map_.count_of(me_);
  const bool is_padded = layout_.is_padded;
  const std::int64_t capacity = static_cast<std::int64_t>(ranks() * max_tokens_);
  for (std::int32_t expert = 0; expert < local; ++expert) {
    rows.counts[expert] = first_position(counts.data(), local, map_.ranks, expert);
  }
  for (std::int32_t expert = 0; expert <= local; ++expert) {
    rows.offsets[expert] = is_padded ? padded_row(expert, capacity, 0)
                                     : compact_offset(rows.counts, expert, alignment_);
  }
  for (std::int32_t expert = 0; !is_padded && expert < local; ++expert) {
    const auto begin = static_cast<std::size_t>(rows.offsets[expert] + rows.counts[expert]);
    const std::size_t gap = static_cast<std::size_t>(rows.offsets[expert + 1]) - begin;
    std::memset(static_cast<std::byte*>(rows.x) + begin * row_.payload_bytes, 0,
                gap * row_.payload_bytes);
    std::memset(rows.weights + begin, 0, gap * sizeof(float));
    if (row_.scale_bytes > 0) {
      std::memset(static_cast<std::byte*>(rows.scales) + begin * row_.scale_bytes, 0,
                  gap * row_.scale_bytes);
    }
  }
}

}  // namespace weft::moe::engine
