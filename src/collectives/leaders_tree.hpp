// The leaders of the nodes of a team in a tree, over which they agree on a value. A leader puts its
// value into the control words of its parent, whose answer comes the same way.
//
// Threads: as Team. Calls follow each other in the same order on all leaders.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/control_words.hpp"
#include "src/collectives/node_calls.hpp"
#include "src/collectives/team_members.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

class LeadersTree {
 public:
  // All outlive it.
  LeadersTree(rma::Rma& rma, rma::Context& context, const TeamMembers& members, ControlWords& words)
      : rma_(rma), context_(context), members_(members), words_(words) {}

  // Counts begin at the current values of `here`, this PE's words.
  void take_over(const TeamArrivals& here);
  // `value`: of this leader's node; then that of all. A leader that finds a PE lost says so to its
  // parent all the same, so that no other waits for it.
  void agree(TeamArrivals& here, AgreedValue& value, FoldValues fold_two, std::string_view name);

 private:
  Status await(const ControlWord& word, std::uint64_t least, std::string_view name, Pe whom) {
    return words_.wait({members_.index(), word.value}, least, name, whom);
  }

  Status send(AgreedValue& dest, const AgreedValue& value, ControlWord& word, Pe to);

  rma::Rma& rma_;
  rma::Context& context_;
  const TeamMembers& members_;
  ControlWords& words_;
  // The values of this PE's words that have been awaited since the process started.
  std::uint64_t proposal_count_ = 0;
  std::uint64_t answer_count_ = 0;
};

}  // namespace weft::collectives
