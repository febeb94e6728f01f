// An ordered set of PEs as one of them sees it: who they are, which of them share a node, where their
// control words are, and how far their calls have come. The primitives that every algorithm is made
// of: enter a call, publish bytes, await a member.
//
// Threads: one at a time, in the same order of calls on all members. Different teams are independent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/choice.hpp"
#include "src/collectives/control.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

// Every stride-th PE of a parent team.
struct TeamRange {
  std::int32_t start = 0;
  std::int32_t stride = 1;
  std::int32_t size = 0;
};

// The members that share a node, by their index in the team, in order.
using Mates = std::vector<std::uint32_t>;

class Team {
 public:
  struct Identity {
    std::uint32_t id = 0;                 // its TeamControl
    std::vector<Pe> members;              // this PE is one of them
    std::int64_t publish_bytes_max = -1;  // instead of what choice.hpp says; -1: that
  };

  // `node_of` says by PE who can load and store each other's memory. The control words are zero, or:
  Team(rma::Rma& rma, Pe me, Identity identity, std::span<const std::uint32_t> node_of);

  // For words that another team has used: counts begin where they stand. All members do so before any
  // of them starts.
  void take_over();
  // Where the calls begin then: no member has published a position beyond it.
  void start(std::uint64_t position);

  // The last position that this PE has published in the control words of team `id`.
  [[nodiscard]] static std::uint64_t published_position(rma::Rma& rma, std::uint32_t id);

  [[nodiscard]] std::uint32_t id() const { return id_; }

  [[nodiscard]] std::uint32_t index() const { return index_; }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }

  [[nodiscard]] Pe pe(std::uint32_t index) const { return members_[index]; }

  [[nodiscard]] std::span<const Pe> members() const { return members_; }

  // The place of `pe` in the team; size() if it is not a member.
  [[nodiscard]] std::uint32_t index_of(Pe pe) const;

  // All members can load and store each other's memory.
  [[nodiscard]] bool is_on_one_node() const { return nodes_.size() == 1; }

  [[nodiscard]] const std::vector<Mates>& nodes() const { return nodes_; }

  [[nodiscard]] std::uint32_t node() const { return node_; }

  // Whether `bytes` of a member are copied and shown, or read where they lie.
  [[nodiscard]] bool publishes(Collective collective, std::size_t bytes) const {
    return publish_bytes_max_ < 0 ? is_published(collective, size(), bytes)
                                  : bytes <= static_cast<std::size_t>(publish_bytes_max_);
  }

  // Those of this PE's node, itself included.
  [[nodiscard]] const Mates& mates() const { return nodes_[node_]; }

  // This PE's place among its mates.
  [[nodiscard]] std::uint32_t lane() const { return lane_; }

  // How many lanes every node has.
  [[nodiscard]] std::uint32_t lane_count() const { return lane_count_; }

  [[nodiscard]] rma::Rma& rma() const { return rma_; }

  // Of the operations that collectives of this team post.
  [[nodiscard]] rma::Context& context() { return context_; }

  [[nodiscard]] TeamControl& control() { return *controls_[index_]; }

  // Of a mate.
  [[nodiscard]] TeamControl& control(std::uint32_t index) { return *controls_[index]; }

  // Where partial results of other nodes arrive; the same bytes on every member.
  [[nodiscard]] std::span<std::byte> inbox();

  // A mate's memory; null if it is not mapped here.
  [[nodiscard]] void* view(const void* address, std::uint32_t index) const {
    return rma_.view(address, members_[index]);
  }

  // ---- One call: enter or publish first, then await.

  // Begins the next call and shows that to the mates.
  void enter() { show(++position_); }

  // The bytes that publish will show, filled in place. Waits until no mate reads what was there
  // before, which is so once all of them have entered the last call.
  Status begin_publication(std::string_view name, std::byte** data);

  // Shows them, and with them that this PE has entered.
  void publish() { show(position_); }

  // The call that this PE is in.
  [[nodiscard]] std::uint64_t position() const { return position_; }

  // Until the mate has entered this call; then `published(mate)` is what it showed.
  Status await_entry(std::uint32_t mate, std::string_view name);
  Status await_all_entries(std::string_view name);

  // For those who have awaited each mate: nothing that was published before is still read.
  void all_have_entered() { all_entered_ = position_; }

  [[nodiscard]] const std::byte* published(std::uint32_t mate) {
    return control(mate).published[position_ % 2].data.data();
  }

  // Until `word` of a mate's control has come to this call.
  Status await_word(ControlWord TeamControl::* word, std::uint32_t mate, std::string_view name);
  Status await_all_words(ControlWord TeamControl::* word, std::string_view name);
  // Shows the mates that a word of this PE has come to this call.
  void show_word(ControlWord TeamControl::* word);

  // Until PEs of other nodes have added `more` to what was awaited of `arrivals` or `results` before.
  // `whom` says who is awaited.
  Status await_arrivals(std::uint64_t more, std::string_view name, Pe whom);
  Status await_results(std::uint64_t more, std::string_view name, Pe whom);

  // Until a word of this PE, to which a member sets, has come to `least`.
  Status await_own(const std::uint64_t& word, std::uint64_t least, std::string_view name, Pe whom) {
    return wait({index_, word}, least, name, whom);
  }

  // All members have entered. Two steps on the node, a dissemination between the nodes' leaders.
  Status sync(std::string_view name);
  // The last sync: nobody looks into another member's memory once that one has returned.
  Status leave(std::string_view name);

 private:
  void find_nodes(std::span<const std::uint32_t> node_of);
  void show(std::uint64_t position);

  // A word as mapped here, of the member whom it belongs to.
  struct MemberWord {
    std::uint32_t index;
    const std::uint64_t& value;
  };

  // Of this PE, which it stored.
  void ring_mates(const std::uint64_t& word);
  [[nodiscard]] WordPlace place_of(const MemberWord& word) const;
  Status wait(MemberWord word, std::uint64_t least, std::string_view name, Pe whom);
  Status disseminate(std::span<const Pe> pes, std::uint32_t place, std::string_view name);

  rma::Rma& rma_;
  rma::Context context_;
  std::uint32_t id_;
  std::int64_t publish_bytes_max_;
  std::vector<Pe> members_;
  std::uint32_t index_ = 0;
  std::uint32_t node_ = 0;
  std::uint32_t lane_ = 0;
  std::uint32_t lane_count_ = 0;
  std::vector<Pe> leaders_;             // by node
  std::vector<Mates> nodes_;            // by order of their first member
  std::vector<TeamControl*> controls_;  // by index; null on other nodes
  std::vector<Pe> others_;              // members but me, the nearest before me first
  std::uint64_t position_ = 0;
  std::uint64_t all_entered_ = 0;  // a call that all mates are known to have entered
  // What has been awaited of this PE's words since the process began.
  std::array<std::uint64_t, kRoundCountMax> sync_counts_{};
  std::uint64_t arrival_count_ = 0;
  std::uint64_t result_count_ = 0;
};

}  // namespace weft::collectives
