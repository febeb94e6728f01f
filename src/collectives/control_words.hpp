// The control words of a team's members on this PE's node: where they are mapped, how this PE waits
// for one, and how it wakes the mates that wait for its own.
//
// Threads: as Team, which owns it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/status.hpp"
#include "src/base/word_bell.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/team_members.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

// The local mapping of a word, and the member that owns it.
struct MemberWord {
  std::uint32_t index;
  const std::uint64_t& value;
};

class ControlWords {
 public:
  // Those of team `id`. The arguments outlive it.
  ControlWords(rma::Rma& rma, const TeamMembers& members, std::uint32_t id);

  // Those of this PE, and of a mate.
  [[nodiscard]] TeamControl& own() const { return *controls_[members_.index()]; }

  [[nodiscard]] TeamControl& of(std::uint32_t index) const { return *controls_[index]; }

  // Waits until the word has reached `least`. `name` is the collective's and `whom` the PE that a
  // long wait reports.
  Status wait(MemberWord word, std::uint64_t least, std::string_view name, Pe whom);

  // Stores a word of this PE, and wakes the mates that wait for it.
  void show(std::uint64_t& word, std::uint64_t value);

 private:
  [[nodiscard]] WordPlace place_of(const MemberWord& word) const;

  rma::Rma& rma_;
  const TeamMembers& members_;
  std::vector<TeamControl*> controls_;  // by index; null on other nodes
};

}  // namespace weft::collectives
