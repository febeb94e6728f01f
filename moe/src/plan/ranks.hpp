// The PEs of an exchange: ranks are their numbers in its team, PEs those in the job, which messages
// and errors name.
//
// Threads: any; constant after construction.
#pragma once

#include <weft/weft.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace weft::moe::engine {

struct Ranks {
  int me = 0;
  std::vector<int> pes;      // by rank
  std::vector<int> node_of;  // by rank

  explicit Ranks(weft_team_t team) : me(weft_team_pe(team)) {
    for (int rank = 0; rank < weft_team_pe_count(team); ++rank) {
      pes.push_back(weft_team_translate(team, rank, WEFT_TEAM_WORLD));
      node_of.push_back(weft_node_of(pes.back()));
    }
  }

  // Of a job that is not there: what an exchange would need in it.
  Ranks(int count, int node_size) {
    for (int rank = 0; rank < count; ++rank) {
      pes.push_back(rank);
      node_of.push_back(rank / node_size);
    }
  }

  [[nodiscard]] std::size_t count() const noexcept { return pes.size(); }

  // By rank.
  [[nodiscard]] const std::vector<int>& nodes() const { return node_of; }

  [[nodiscard]] bool span_nodes() const {
    return std::ranges::any_of(node_of, [&](int node) { return node != node_of.front(); });
  }

  // "PE 3, PE 5".
  [[nodiscard]] std::string names(const std::vector<std::size_t>& ranks) const {
    std::string text;
    for (const std::size_t rank : ranks) {
      text += (text.empty() ? "PE " : ", PE ") + std::to_string(pes[rank]);
    }
    return text;
  }
};

}  // namespace weft::moe::engine
