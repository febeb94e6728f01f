// The teams of one PE, and the collectives on them. A team's collectives use only rma. The
// algorithm depends on where the members are (algorithms.hpp) and on sizes (choice.hpp).
//
// A collective that moves data waits until all PEs concerned have entered before it writes the
// first byte. So a fast PE's next call cannot overwrite data that a slow PE still reads.
//
// Threads: each team by one thread of each PE at a time, with the same calls in the same order on
// all its members. Several threads may create and use several teams at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/algorithms.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/meeting.hpp"
#include "src/collectives/team.hpp"
#include "src/collectives/team_maker.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

class Collectives {
 public:
  // The heap has kControlBytes of control bytes. `node_of` is by PE, as for Team; `machine_of` is
  // by PE, any number that the PEs of a machine share; `publish_bytes_max` is that of
  // Team::Identity, for tuning runs.
  Collectives(rma::Rma& rma,
              Pe me,
              std::vector<std::uint32_t> node_of,
              std::span<const std::uint32_t> machine_of,
              std::int64_t publish_bytes_max = -1);

  [[nodiscard]] Team& world() { return *world_; }

  // The PEs of this node.
  [[nodiscard]] Team& node_team() { return *node_team_; }

  // The PEs of this machine, which may be several nodes.
  [[nodiscard]] Team& machine_team() { return *machine_team_; }

  // The PEs with this PE's index on their machines, one of each.
  [[nodiscard]] Team& machine_peers() { return *machine_peers_; }

  // Returns when all PEs have entered. Does not complete outstanding operations. PeerLost if any PE
  // is lost.
  Status sync_all() { return world_->sync("sync_all"); }

  // As sync_all; `name` is the operation that a long wait reports.
  Status sync(std::string_view name) { return world_->sync(name); }

  // The last sync of all PEs. When it returns, no signal of this PE is in flight.
  Status leave();

  // quiet on `context`, then sync_all.
  Status barrier_all(rma::Context& context);

  // ---- On a team. `dest` and `source` are symmetric.

  // `all` receives the requests of all members.
  static Status exchange(Team& team,
                         const CollectiveRequest& mine,
                         std::span<CollectiveRequest> all);
  // Of at most kNoteBytesMax bytes each, in any memory. Where the members' lengths differ, what
  // lies beyond the shorter one is undefined.
  static Status exchange(Team& team, const Notes& notes);
  static Status alltoall(Team& team, Sides sides, std::size_t bytes_per_pe);
  static Status alltoalls(Team& team, Sides sides, const Strides& strides);
  static Status broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root);
  static Status fcollect(Team& team, Sides sides, std::size_t bytes);
  static Status collect(Team& team, Sides sides, std::size_t bytes);
  static Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer);
  static Status scan(Team& team, Sides sides, std::size_t count, const Scan& scan);

  // ---- Creating teams.

  using Split = TeamMaker::Split;

  // As TeamMaker's.
  Split split(Team& parent, const TeamRange& range) { return maker_.split(parent, range); }

  [[nodiscard]] MeetingId make_id() { return maker_.make_id(); }

  Split join(MeetingId id, Meeting::Place place) { return maker_.join(id, place); }

  // Not for the predefined teams.
  Status destroy(Team& team) { return maker_.destroy(team); }

  // True for the four teams that always exist.
  [[nodiscard]] bool is_predefined(const Team* team) const;
  // True for an existing team.
  [[nodiscard]] bool is_team(const Team* team);

 private:
  rma::Rma& rma_;
  std::vector<std::uint32_t> node_of_;
  std::unique_ptr<Team> world_;
  std::unique_ptr<Team> node_team_;
  std::unique_ptr<Team> machine_team_;
  std::unique_ptr<Team> machine_peers_;
  TeamMaker maker_;
};

}  // namespace weft::collectives
