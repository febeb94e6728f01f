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

#include "src/base/function_ref.hpp"
#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/control_words.hpp"
#include "src/collectives/team_members.hpp"

namespace weft::collectives {

// Combines the bytes of two values. The trees' shapes decide in which order.
using FoldValues = FunctionRef<void(AgreedValue& into, const AgreedValue& from)>;

inline void fold(AgreedValue& into, const AgreedValue& from, FoldValues fold_two) {
  if (into.status == Status::Ok && from.status == Status::Ok) {
    fold_two(into, from);
  } else if (into.status == Status::Ok) {
    into.status = from.status;
  }
}

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

  // A call in two halves, over a tree of the node's PEs whose root is the first of them. A PE reads
  // words of its parent and its children alone, and wakes these alone.
  //
  // Enters the next call, waits until all below this PE have entered it, and combines their values
  // with `value`. The root has that of all mates then; others show it to their parents. A wait that
  // fails is the value's status.
  void gather(AgreedValue& value, FoldValues fold_two, std::string_view name);
  // The second half: the root passes on its value, which all others receive.
  void release(AgreedValue& value, std::string_view name);

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
