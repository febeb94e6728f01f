#include "moe/src/cpu/routing.hpp"

#include <algorithm>

namespace weft::moe::engine {

void find_slots(Routing& routing, const Groups& groups) {
  const ExpertMap& map = routing.map;
  routing.sent.assign(groups.count(), {});
  for (Sent& sent : routing.sent) {
    sent.bits.assign((routing.tokens + 63) / 64, 0);
  }
  for (std::size_t token = 0; token < routing.tokens; ++token) {
    const Route route = routing.route(token);
    for (std::int32_t lane = 0; lane < route.topk; ++lane) {
      if (route.ids[lane] < 0) {
        continue;
      }
      const auto rank = static_cast<std::size_t>(map.rank_of(route.ids[lane]));
      Sent& sent = routing.sent[groups.of(rank)];
      if (!has_token(sent.bits.data(), static_cast<std::int32_t>(token))) {
        sent.bits[token / 64] |= std::uint64_t{1} << token % 64;
        sent.tokens.push_back(static_cast<std::int32_t>(token));
      }
      sent.exact_rows += route.is_first(lane) ? 1 : 0;
    }
  }
  std::size_t reduced = 0;
  std::size_t exact = 0;
  for (Sent& sent : routing.sent) {
    sent.reply_reduced = reduced;
    sent.reply_exact = exact;
    reduced += sent.tokens.size();
    exact += sent.exact_rows;
  }
}

void find_sources(const Routing& routing, const RowSources& sources) {
  std::ranges::fill(sources.ranks, -1);
  std::ranges::fill(sources.tokens, -1);
  for (std::size_t rank = 0; rank < routing.arrived.size(); ++rank) {
    const Arrived& from = routing.arrived[rank];
    const std::size_t lanes = from.rows == 0 ? 0 : from.at.size() / from.rows;
    for (std::size_t i = 0; i < from.at.size(); ++i) {
      if (from.at[i] >= 0) {
        const auto row = static_cast<std::size_t>(from.at[i]);
        sources.ranks[row] = static_cast<std::int32_t>(rank);
        sources.tokens[row] = from.tokens[i / lanes];
      }
    }
  }
}

void add_mates(const Route& route,
               const ExpertMap& map,
               const Groups& groups,
               std::vector<std::int32_t>& mates) {
  for (std::int32_t lane = 0; lane < route.topk; ++lane) {
    std::int32_t mate = -1;
    if (route.ids[lane] >= 0 && route.is_first(lane)) {
      const auto rank = static_cast<std::size_t>(map.rank_of(route.ids[lane]));
      mate = groups.is_mate(rank) ? static_cast<std::int32_t>(groups.index_in_node(rank)) : -1;
    }
    mates.push_back(mate);
  }
}

}  // namespace weft::moe::engine
