// weft.Team as other files of the module see it.
//
// Threads: any that holds the GIL.
#pragma once

#include <weft/weft.h>

#include <string_view>

namespace weft::python {

struct Team {
  weft_team_t handle = WEFT_TEAM_WORLD;
  bool is_destroyed = false;
};

// "sum" for WEFT_SUM.
std::string_view reduction_name(weft_reduction reduction);

// The library's team. Throws if it is destroyed, or if this PE is not in it.
weft_team_t handle_of(const Team& team, const char* name);

}  // namespace weft::python
