#include "moe/src/cpu/sums.hpp"

#include <algorithm>
#include <cstring>

#include "moe/src/plan/element.hpp"

namespace weft::moe::engine {

Sums::Sums(const SumsOf& of,
           const ReceivedPartialSums& from,
           const Routing& routing,
           const weft_moe_outputs& outputs)
    : of_(of),
      from_(from),
      routing_(routing),
      outputs_(outputs),
      topk_(static_cast<std::size_t>(routing.topk)),
      row_bytes_(row_bytes_of(of.type, of.hidden)) {}

void Sums::write(std::byte* out) const {
  with_type(of_.type, [&]<typename Type>(Type /*type*/) {
    switch (outputs_.precision) {
      case WEFT_MOE_REDUCED:
      case WEFT_MOE_FP8:
        return add_groups<Type>(out);
      case WEFT_MOE_EXACT:
        return add_lanes<Type>(out);
      case WEFT_MOE_LANES:
        return copy_lanes(out);
    }
  });
}

// At most one sum of each rank of this node, and of each other rank or node.
template <typename Type>
void Sums::add_groups(std::byte* out) const {
  RowSum<Type> sum(of_.hidden);
  for (std::size_t token = 0; token < routing_.tokens; ++token) {
    sum.clear();
    for (std::size_t group = 0; group < from_.groups.count(); ++group) {
      const Sent& sent = routing_.sent[group];
      const auto number = static_cast<std::int32_t>(token);
      if (from_.attendance.is_group_active(group) && has_token(sent.bits.data(), number)) {
        const auto slot = static_cast<std::size_t>(slot_of(sent.bits.data(), number));
        const std::byte* row = from_.combine.row(group, slot, sent.reply_reduced);
        if (outputs_.precision == WEFT_MOE_FP8) {
          sum.add_fp8(row);
        } else {
          sum.add(row);
        }
      }
    }
    sum.store(out + token * row_bytes_);
  }
}

// Calls visit(token, lane, row) for all lanes with a route to a group that is active, in the order
// of tokens, then lanes.
template <typename Visit>
void Sums::for_lanes(Visit&& visit) const {
  std::vector<std::size_t> next(from_.groups.count());
  std::vector<const std::byte*> rows(topk_);
  for (std::size_t token = 0; token < routing_.tokens; ++token) {
    const Route route = routing_.route(token);
    for (std::int32_t lane = 0; lane < route.topk; ++lane) {
      if (route.ids[lane] < 0) {
        continue;
      }
      const std::size_t group =
          from_.groups.of(static_cast<std::size_t>(routing_.map.rank_of(route.ids[lane])));
      const auto at = static_cast<std::size_t>(lane);
      if (route.is_first(lane)) {
        rows[at] = from_.attendance.is_group_active(group)
                       ? from_.combine.row(group, next[group]++, routing_.sent[group].reply_exact)
                       : nullptr;
      } else {
        rows[at] = rows[static_cast<std::size_t>(route.first_lane(lane))];
      }
      if (rows[at] != nullptr) {
        visit(token, lane, rows[at]);
      }
    }
  }
}

template <typename Type>
void Sums::add_lanes(std::byte* out) const {
  std::memset(out, 0, routing_.tokens * row_bytes_);
  RowSum<Type> sum(of_.hidden);
  std::size_t current = 0;
  bool has_rows = false;
  const auto finish = [&] {
    if (has_rows) {
      sum.store(out + current * row_bytes_);
    }
    sum.clear();
    has_rows = false;
  };
  for_lanes([&](std::size_t token, std::int32_t lane, const std::byte* row) {
    if (token != current) {
      finish();
      current = token;
    }
    has_rows = true;
    if (outputs_.weighting != WEFT_MOE_UNWEIGHTED) {
      sum.add(row, outputs_.topk_weights[token * topk_ + static_cast<std::size_t>(lane)]);
    } else if (routing_.route(token).is_first(lane)) {
      sum.add(row);
    }
  });
  finish();
}

void Sums::copy_lanes(std::byte* out) const {
  std::memset(out, 0, routing_.tokens * topk_ * row_bytes_);
  for_lanes([&](std::size_t token, std::int32_t lane, const std::byte* row) {
    std::memcpy(out + (token * topk_ + static_cast<std::size_t>(lane)) * row_bytes_, row,
                row_bytes_);
  });
}

}  // namespace weft::moe::engine
