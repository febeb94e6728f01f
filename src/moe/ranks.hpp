// The PEs of an exchange: ranks are their numbers in its team, PEs those in the job, which messages
// and errors name.
//
// Threads: any; constant after construction.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <string>
#include <vector>

namespace weft::moe::engine {

struct Ranks {
  int me = 0;
  std::vector<int> pes;  // by rank

  explicit Ranks(weft_team_t team) : me(weft_team_pe(team)) {
    for (int rank = 0; rank < weft_team_pe_count(team); ++rank) {
      pes.push_back(weft_team_translate(team, rank, WEFT_TEAM_WORLD));
    }
  }

  [[nodiscard]] std::size_t count() const noexcept { return pes.size(); }

  // By rank.
  [[nodiscard]] std::vector<int> nodes() const {
    std::vector<int> nodes;
    for (const int pe : pes) {
      nodes.push_back(weft_node_of(pe));
    }
    return nodes;
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
