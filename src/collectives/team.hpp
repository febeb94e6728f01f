// A team: its members as seen by one of them, the control words through which their calls follow
// each other, and the memory and context that its collectives use. Provides the primitives of every
// algorithm: calls within the node (node_calls.hpp), counts of what came from other nodes, and
// sync.
//
// Threads: one at a time, with the same order of calls on all members. Different teams are
// independent.
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
#include "src/collectives/control_words.hpp"
#include "src/collectives/node_calls.hpp"
#include "src/collectives/team_members.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

// Every stride-th PE of a parent team.
struct TeamRange {
  std::int32_t start = 0;
  std::int32_t stride = 1;
  std::int32_t size = 0;

  friend bool operator==(const TeamRange&, const TeamRange&) = default;
};

class Team {
 public:
  struct Identity {
    std::uint32_t id = 0;                 // the index of its TeamControl
    std::vector<Pe> members;              // this PE is one of them
    std::int64_t publish_bytes_max = -1;  // overrides choice.hpp; -1: no override
  };

  // `node_of` as for TeamMembers. The control words are zero, or:
  Team(rma::Rma& rma, Pe me, Identity identity, std::span<const std::uint32_t> node_of);
  // For control words that another team has used: counts begin at their current values. All members
  // call it before any of them starts.
  void take_over();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() = default;

  // The last position that this PE has published in the control words of team `id`.
  [[nodiscard]] static std::uint64_t published_position(rma::Rma& rma, std::uint32_t id);

  [[nodiscard]] std::uint32_t id() const { return id_; }

  [[nodiscard]] const TeamMembers& members() const { return members_; }

  [[nodiscard]] std::uint32_t index() const { return members_.index(); }

  [[nodiscard]] std::uint32_t size() const { return members_.size(); }

  [[nodiscard]] Pe pe(std::uint32_t index) const { return members_.pe(index); }

  // Whether `bytes` of a member are copied and published, or read directly from the source.
  [[nodiscard]] bool publishes(Collective collective, std::size_t bytes) const {
    return publish_bytes_max_ < 0 ? is_published(collective, size(), bytes)
                                  : bytes <= static_cast<std::size_t>(publish_bytes_max_);
  }

  [[nodiscard]] rma::Rma& rma() const { return rma_; }

  // The context of the operations that this team's collectives post.
  [[nodiscard]] rma::Context& context() { return context_; }

  // This PE's control words.
  [[nodiscard]] TeamControl& control() { return words_.own(); }

  // This PE's words that other nodes add to, and its note.
  [[nodiscard]] TeamArrivals& arrivals();

  // The buffer for partial results of other nodes; at the same offset on every member, and
  // registered with the NICs.
  [[nodiscard]] std::span<std::byte> scratch();

  // Where symmetric memory of a member lies.
  [[nodiscard]] heap::Place place_of(const void* address, std::uint32_t index) const {
    return rma_.place_of(address, pe(index));
  }

  // Its local mapping; null if it is not mapped here.
  [[nodiscard]] void* view(const void* address, std::uint32_t index) const {
    return place_of(address, index).mapped;
  }

  // The calls as the members on this PE's node follow them.
  [[nodiscard]] NodeCalls& on_node() { return on_node_; }

  // Waits until PEs of other nodes have added `more` to the previously awaited value of `pieces` or
  // `results`. `whom` is the PE that a long wait reports.
  Status await_arrivals(std::uint64_t more, std::string_view name, Pe whom);
  Status await_results(std::uint64_t more, std::string_view name, Pe whom);

  // Waits until a word of this PE, which another member sets, has reached `least`.
  Status await_own(const std::uint64_t& word, std::uint64_t least, std::string_view name, Pe whom) {
    return words_.wait({index(), word}, least, name, whom);
  }

  // Returns when all members have entered. Two steps on the node, and a dissemination between the
  // nodes' leaders.
  Status sync(std::string_view name);
  // The last sync: after it returns, no member reads another member's memory.
  Status leave(std::string_view name);

 private:
  Status disseminate(std::span<const Pe> pes, std::uint32_t place, std::string_view name);

  rma::Rma& rma_;
  rma::Context context_;
  std::uint32_t id_;
  std::int64_t publish_bytes_max_;
  TeamMembers members_;
  ControlWords words_;
  NodeCalls on_node_;
  // The values of this PE's words that have been awaited since the process started.
  std::array<std::uint64_t, kRoundCountMax> sync_counts_{};
  std::uint64_t piece_count_ = 0;
  std::uint64_t result_count_ = 0;
};

}  // namespace weft::collectives
