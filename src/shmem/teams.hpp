// What of OpenSHMEM's teams is not weft_team_* already: their configurations, which are remembered
// until the team is destroyed.
//
// Threads: split and destroy as the collectives that they are; the rest by any.
#pragma once

#include <shmem.h>

namespace weft::api::shmem {

// What a program asks of a new team; only the members in `mask` count.
struct TeamConfig {
  const shmem_team_config_t* config;
  long mask;
};

// A team to be made: what is asked of it, and where its handle goes.
struct NewTeam {
  TeamConfig wanted;
  weft_team_t* team;
};

int split(weft_team_t parent,
          const weft_team_range& range,
          const TeamConfig& wanted,
          weft_team_t* team);
int split_2d(weft_team_t parent, int x_size, const NewTeam& x, const NewTeam& y);
// Nothing for SHMEM_TEAM_INVALID.
int destroy_team(weft_team_t team);
// 0, or an error if `team` is none.
int team_config(weft_team_t team, long mask, shmem_team_config_t* config);

}  // namespace weft::api::shmem
