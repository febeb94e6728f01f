// The teams of one PE, and what is called on them. A team's collectives are written on rma alone; which
// algorithm they take depends on where its members are (algorithms.hpp) and on sizes (choice.hpp).
//
// A collective that moves data waits until all who matter have entered before the first byte is
// written, so a fast PE's next call cannot touch what a slow PE still reads.
//
// Threads: each team by one thread of each PE at a time, the same calls in the same order on all its
// members. Several teams may be made and used by several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/algorithms.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/team.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

class Collectives {
 public:
  // The heap has kControlBytes of control bytes. `node_of` is by PE, as Team; `publish_bytes_max` as
  // Team::Identity's, for tuning runs.
  Collectives(rma::Rma& rma,
              Pe me,
              std::vector<std::uint32_t> node_of,
              std::int64_t publish_bytes_max = -1);

  [[nodiscard]] Team& world() { return *world_; }

  // The PEs of this node.
  [[nodiscard]] Team& node_team() { return *node_team_; }

  // All PEs have entered. Says nothing about outstanding operations. PeerLost if any PE is lost.
  Status sync_all() { return world_->sync("sync_all"); }

  // As sync_all; `name` is what a long wait says it is in.
  Status sync(std::string_view name) { return world_->sync(name); }

  // The last sync of all, after which no signal of this PE is on the way any more.
  Status leave();

  // quiet on `context`, then sync_all.
  Status barrier_all(rma::Context& context);

  // Shows `mine` to all PEs; `all` gets everybody's, by PE.
  Status exchange(const CollectiveRequest& mine, std::span<CollectiveRequest> all) {
    return exchange(*world_, mine, all);
  }

  // ---- On a team. `dest` and `source` are symmetric.

  static Status exchange(Team& team,
                         const CollectiveRequest& mine,
                         std::span<CollectiveRequest> all);
  static Status alltoall(Team& team, Sides sides, std::size_t bytes_per_pe);
  static Status alltoalls(Team& team, Sides sides, const Strides& strides);
  static Status broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root);
  static Status fcollect(Team& team, Sides sides, std::size_t bytes);
  static Status collect(Team& team, Sides sides, std::size_t bytes);
  static Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer);
  static Status scan(Team& team, Sides sides, std::size_t count, const Scan& scan);

  // ---- Making teams.

  struct Split {
    Status status =
        Status::Ok;        // Mismatch: ranges differ; OutOfMemory: no team is free. On all members
    Team* team = nullptr;  // null on those outside the range
    std::uint32_t other = 0;  // Mismatch: whose range differs from that of member 0
  };

  // Collective over `parent`; the range has been checked to lie in it.
  Split split(Team& parent, const TeamRange& range);
  // Collective over `team`, which is gone then. Not for the two that are always there.
  Status destroy(Team& team);
  // True for a team that exists.
  [[nodiscard]] bool is_team(const Team* team);

 private:
  struct Claim {
    std::uint32_t id = 0;
    bool is_mine = false;
  };

  // The lowest number that is free here and in `free`, bit by bit.
  Claim claim(std::uint64_t free);
  void give_back(std::uint32_t id);
  std::unique_ptr<Team> join(Team& parent, const TeamRange& range, std::uint32_t id);

  rma::Rma& rma_;
  Pe me_;
  std::vector<std::uint32_t> node_of_;
  std::int64_t publish_bytes_max_;
  std::unique_ptr<Team> world_;
  std::unique_ptr<Team> node_team_;
  std::mutex mutex_;  // guards the two below
  std::uint64_t free_ids_;
  std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace weft::collectives
