// Creates the teams of a program, out of a parent, or of any PEs by an id; and destroys them. All
// members of a team have the same number for it, which nobody else of theirs has.
//
// Threads: any; several may create and destroy several teams at once, but one at a time of a PE
// joins by an id.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/meeting.hpp"
#include "src/collectives/team.hpp"
#include "src/collectives/team_numbers.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

class TeamMaker {
 public:
  struct Split {
    Status status =
        Status::Ok;        // Mismatch: ranges differ; OutOfMemory: no team is free. On all members
    Team* team = nullptr;  // null on PEs outside the range
    std::uint32_t other = 0;  // Mismatch: the member whose range differs from member 0's
  };

  struct Settings {
    std::uint32_t first_id = 0;  // lower ones are the predefined teams'
    std::int64_t publish_bytes_max = -1;
  };

  // `rma` and `node_of`, which is as for Team, outlive it.
  TeamMaker(rma::Rma& rma, Pe me, std::span<const std::uint32_t> node_of, const Settings& settings);

  // Collective over `parent`; the caller has checked that the range is inside it.
  Split split(Team& parent, const TeamRange& range);

  // An id by which PEs can join a team; never the same.
  [[nodiscard]] MeetingId make_id();
  // Called by the PEs that become the team, with this PE's place in it. The PE that made the id is
  // one of them. Mismatch: two PEs have the same index, or not all the same count.
  Split join(MeetingId id, Meeting::Place place);

  // Collective over `team`, which no longer exists afterwards.
  Status destroy(Team& team);
  // True for an existing team that was made here.
  [[nodiscard]] bool has(const Team* team);

 private:
  // The PEs that create a team, and how they exchange requests.
  struct Creators {
    std::uint32_t count = 0;
    std::uint32_t index = 0;  // of this PE
    FunctionRef<Status(const CollectiveRequest& mine, std::span<CollectiveRequest> all)> exchange;
    FunctionRef<Pe(std::uint32_t index)> pe;  // after an exchange
  };

  struct Claim {
    std::uint32_t id = 0;
    bool is_mine = false;
  };

  Split create(const Creators& creators, const TeamRange& range);
  // Claims the lowest number of `free`, which is not empty, if it is still free here.
  Claim claim(const TeamNumbers& free);
  void give_back(std::uint32_t id);
  std::unique_ptr<Team> enter(const Creators& creators, const TeamRange& range, std::uint32_t id);

  rma::Rma& rma_;
  Pe me_;
  std::span<const std::uint32_t> node_of_;
  std::int64_t publish_bytes_max_;
  std::mutex mutex_;  // guards the members below
  std::uint32_t id_count_ = 0;
  TeamNumbers free_ids_;
  std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace weft::collectives
