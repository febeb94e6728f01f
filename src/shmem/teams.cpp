#define SHMEM_NO_GENERICS 1
#include "src/shmem/teams.hpp"

#include <map>
#include <mutex>

#include "src/api/errors.hpp"
#include "src/api/process.hpp"

namespace weft::api::shmem {
namespace {

// The configurations of teams that were created with one.
struct Configurations {
  std::mutex mutex;
  std::map<weft_team_t, shmem_team_config_t> by_team;
};

Configurations& configurations() {
  static Configurations all;
  return all;
}

void remember(weft_team_t team, const TeamConfig& wanted) {
  if (team == WEFT_TEAM_INVALID) {
    return;
  }
  const bool has_contexts = wanted.config != nullptr && (wanted.mask & SHMEM_TEAM_NUM_CONTEXTS);
  const std::unique_lock lock(configurations().mutex);
  configurations().by_team[team] = {.num_contexts = has_contexts ? wanted.config->num_contexts : 0};
}

}  // namespace

int split(weft_team_t parent,
          const weft_team_range& range,
          const TeamConfig& wanted,
          weft_team_t* team) {
  *team = WEFT_TEAM_INVALID;
  const int status = weft_team_split(parent, range, team);
  remember(*team, wanted);
  return status;
}

int split_2d(weft_team_t parent, int x_size, const NewTeam& x, const NewTeam& y) {
  *x.team = WEFT_TEAM_INVALID;
  *y.team = WEFT_TEAM_INVALID;
  const int status = weft_team_split_2d(parent, x_size, x.team, y.team);
  remember(*x.team, x.wanted);
  remember(*y.team, y.wanted);
  return status;
}

int destroy_team(weft_team_t team) {
  if (team == WEFT_TEAM_INVALID) {
    return WEFT_OK;
  }
  {
    // Not held while the team is destroyed: that waits for other PEs, whose threads may be
    // destroying another team.
    const std::unique_lock lock(configurations().mutex);
    configurations().by_team.erase(team);
  }
  return weft_team_destroy(team);
}

int team_config(weft_team_t team, long mask, shmem_team_config_t* config) {
  if (weft_team_pe(team) < 0) {
    return report(Status::InvalidArgument, "shmem_team_get_config: not a team");
  }
  if (mask & SHMEM_TEAM_NUM_CONTEXTS) {
    const std::unique_lock lock(configurations().mutex);
    const auto found = configurations().by_team.find(team);
    config->num_contexts = found == configurations().by_team.end() ? 0 : found->second.num_contexts;
  }
  return WEFT_OK;
}

}  // namespace weft::api::shmem
