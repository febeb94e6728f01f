// An ordered set of PEs as seen by one of its members: the members, which of them share a node, where their control
// words are, and how far their calls have progressed. Provides the primitives of every algorithm: enter a call,
// publish bytes, await a member.
//
// Threads: one at a time, with the same order of calls on all members. Different teams are independent.
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

// The members that share a node, as team indices, in order.
using Mates = std::vector<std::uint32_t>;

class Team {
 public:
  struct Identity {
    std::uint32_t id = 0;                 // the index of its TeamControl
    std::vector<Pe> members;              // this PE is one of them
    std::int64_t publish_bytes_max = -1;  // overrides choice.hpp; -1: no override
  };

  // `node_of`, by PE, groups the PEs that can load and store each other's memory. The control words are zero, or:
  Team(rma::Rma& rma, Pe me, Identity identity, std::span<const std::uint32_t> node_of);

  // For control words that another team has used: counts begin at their current values. All members call it before
  // any of them starts.
  void take_over();
  // The position at which calls then begin: no member has published a larger one.
  void start(std::uint64_t position);

  // The last position that this PE has published in the control words of team `id`.
  [[nodiscard]] static std::uint64_t published_position(rma::Rma& rma, std::uint32_t id);

  [[nodiscard]] std::uint32_t id() const { return id_; }

  [[nodiscard]] std::uint32_t index() const { return index_; }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }

  [[nodiscard]] Pe pe(std::uint32_t index) const { return members_[index]; }

  [[nodiscard]] std::span<const Pe> members() const { return members_; }

  // The index of `pe` in the team; size() if it is not a member.
  [[nodiscard]] std::uint32_t index_of(Pe pe) const;

  // Whether all members can load and store each other's memory.
  [[nodiscard]] bool is_on_one_node() const { return nodes_.size() == 1; }

  [[nodiscard]] const std::vector<Mates>& nodes() const { return nodes_; }

  [[nodiscard]] std::uint32_t node() const { return node_; }

  // Whether `bytes` of a member are copied and published, or read directly from the source.
  [[nodiscard]] bool publishes(Collective collective, std::size_t bytes) const {
    return publish_bytes_max_ < 0 ? is_published(collective, size(), bytes)
                                  : bytes <= static_cast<std::size_t>(publish_bytes_max_);
  }

  // The members on this PE's node, itself included.
  [[nodiscard]] const Mates& mates() const { return nodes_[node_]; }

  // This PE's index among its mates.
  [[nodiscard]] std::uint32_t lane() const { return lane_; }

  // The number of lanes that every node has.
  [[nodiscard]] std::uint32_t lane_count() const { return lane_count_; }

  [[nodiscard]] rma::Rma& rma() const { return rma_; }

  // The context of the operations that this team's collectives post.
  [[nodiscard]] rma::Context& context() { return context_; }

  [[nodiscard]] TeamControl& control() { return *controls_[index_]; }

  // The control words of a mate.
  [[nodiscard]] TeamControl& control(std::uint32_t index) { return *controls_[index]; }

  // The buffer for partial results of other nodes; at the same offset on every member.
  [[nodiscard]] std::span<std::byte> scratch();

  // The local mapping of a mate's memory; null if it is not mapped here.
  [[nodiscard]] void* view(const void* address, std::uint32_t index) const {
    return rma_.view(address, members_[index]);
  }

  // ---- One call: enter or publish first, then await.

  // Begins the next call and notifies the mates.
  void enter() { show(++position_); }

  // Returns the buffer that publish will expose, to be filled in place. Waits until no mate reads its previous
  // contents, which holds once all mates have entered the last call.
  Status begin_publication(std::string_view name, std::byte** data);

  // Exposes the buffer, and notifies the mates that this PE has entered.
  void publish() { show(position_); }

  // The position of the call that this PE is in.
  [[nodiscard]] std::uint64_t position() const { return position_; }

  // Waits until the mate has entered this call; then `published(mate)` is the data that it published.
  Status await_entry(std::uint32_t mate, std::string_view name);
  Status await_all_entries(std::string_view name);

  // Call after awaiting each mate: no earlier publication is being read any more.
  void all_have_entered() { all_entered_ = position_; }

  [[nodiscard]] const std::byte* published(std::uint32_t mate) {
    return control(mate).published[position_ % 2].data.data();
  }

  // Waits until `word` of a mate's control has reached this call.
  Status await_word(ControlWord TeamControl::* word, std::uint32_t mate, std::string_view name);
  Status await_all_words(ControlWord TeamControl::* word, std::string_view name);
  // Notifies the mates that a word of this PE has reached this call.
  void show_word(ControlWord TeamControl::* word);

  // Waits until PEs of other nodes have added `more` to the previously awaited value of `arrivals` or `results`.
  // `whom` is the PE that a long wait reports.
  Status await_arrivals(std::uint64_t more, std::string_view name, Pe whom);
  Status await_results(std::uint64_t more, std::string_view name, Pe whom);

  // Waits until a word of this PE, which another member sets, has reached `least`.
  Status await_own(const std::uint64_t& word, std::uint64_t least, std::string_view name, Pe whom) {
    return wait({index_, word}, least, name, whom);
  }

  // Returns when all members have entered. Two steps on the node, and a dissemination between the nodes' leaders.
  Status sync(std::string_view name);
  // The last sync: after it returns, no member reads another member's memory.
  Status leave(std::string_view name);

 private:
  void find_nodes(std::span<const std::uint32_t> node_of);
  void show(std::uint64_t position);

  // The local mapping of a word, and the member that owns it.
  struct MemberWord {
    std::uint32_t index;
    const std::uint64_t& value;
  };

  // Rings the mates for a word of this PE, after it was stored.
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
  std::vector<Mates> nodes_;            // ordered by first member
  std::vector<TeamControl*> controls_;  // by index; null on other nodes
  std::vector<Pe> others_;  // all members except this PE, starting with the nearest predecessor
  std::uint64_t position_ = 0;
  std::uint64_t all_entered_ = 0;  // a call that all mates are known to have entered
  // The values of this PE's words that have been awaited since the process started.
  std::array<std::uint64_t, kRoundCountMax> sync_counts_{};
  std::uint64_t arrival_count_ = 0;
  std::uint64_t result_count_ = 0;
};

}  // namespace weft::collectives
