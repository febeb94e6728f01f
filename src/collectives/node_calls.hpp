// How the members of a team on one node follow each other through its calls: each PE shows the
// position of the call that it has entered, may publish data with it, and awaits what its mates
// show. Positions only grow; nobody resets a word.
//
// One call: enter or publish first, then await.
//
// Threads: as Team, which owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/control_words.hpp"
#include "src/collectives/team_members.hpp"

namespace weft::collectives {

class NodeCalls {
 public:
  // Both arguments outlive it.
  NodeCalls(const TeamMembers& members, ControlWords& words) : members_(members), words_(words) {}

  // The position at which calls begin: no member has published a larger one.
  void start(std::uint64_t position);

  // Begins the next call and notifies the mates.
  void enter() { show(++position_); }

  // Returns the buffer that publish will expose, to be filled in place. Waits until no mate reads
  // its previous contents, which holds once all mates have entered the last call.
  Status begin_publication(std::string_view name, std::byte** data);

  // Exposes the buffer, and notifies the mates that this PE has entered.
  void publish() { show(position_); }

  // Waits until the mate has entered this call; then `published(mate)` is the data that it
  // published.
  Status await_entry(std::uint32_t mate, std::string_view name);
  Status await_all_entries(std::string_view name);

  // Call after awaiting each mate: no earlier publication is being read any more.
  void all_have_entered() { all_entered_ = position_; }

  [[nodiscard]] const std::byte* published(std::uint32_t mate) const {
    return words_.of(mate).published[position_ % 2].data.data();
  }

  // Waits until `word` of a mate's control has reached this call.
  Status await_word(ControlWord TeamControl::* word, std::uint32_t mate, std::string_view name);
  Status await_all_words(ControlWord TeamControl::* word, std::string_view name);
  // Notifies the mates that a word of this PE has reached this call.
  void show_word(ControlWord TeamControl::* word);

 private:
  void show(std::uint64_t position) {
    words_.show(words_.own().published[position % 2].position, position);
  }

  const TeamMembers& members_;
  ControlWords& words_;
  std::uint64_t position_ = 0;     // of the call that this PE is in
  std::uint64_t all_entered_ = 0;  // a call that all mates are known to have entered
};

}  // namespace weft::collectives
