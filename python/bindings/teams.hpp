// weft.Team as other files of the module see it.
//
// Threads: any that holds the GIL.
#pragma once

#include <weft/weft.h>

namespace weft::python {

struct Team {
  weft_team_t handle = WEFT_TEAM_WORLD;
  bool is_destroyed = false;
};

// The library's team. Throws if it is destroyed, or if this PE is not in it.
weft_team_t handle_of(const Team& team, const char* name);

}  // namespace weft::python
