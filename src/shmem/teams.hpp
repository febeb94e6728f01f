// The part of OpenSHMEM's teams that weft_team_* does not provide: their configurations, which are
// stored until the team is destroyed.
//
// Threads: split and destroy as for collectives; the rest by any thread.
#pragma once

#include <shmem.h>

namespace weft::api::shmem {

// The requested configuration of a new team; only the members in `mask` are valid.
struct TeamConfig {
  const shmem_team_config_t* config;
  long mask;
};

// The arguments of a team to be created: its configuration, and where to store its handle.
struct NewTeam {
  TeamConfig wanted;
  weft_team_t* team;
};

int split(weft_team_t parent,
          const weft_team_range& range,
          const TeamConfig& wanted,
          weft_team_t* team);
int split_2d(weft_team_t parent, int x_size, const NewTeam& x, const NewTeam& y);
// No effect for SHMEM_TEAM_INVALID.
int destroy_team(weft_team_t team);
// 0, or an error if `team` is not a team.
int team_config(weft_team_t team, long mask, shmem_team_config_t* config);

}  // namespace weft::api::shmem
