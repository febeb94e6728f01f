// Contexts of the C interface that end with their team or with the job.
//
// Threads: any, between weft_init and weft_finalize. Both functions first complete the outstanding
// operations of the contexts that they destroy.
#pragma once

#include <weft/collectives.h>

#include "src/base/status.hpp"

namespace weft::api {

Status destroy_contexts_of(weft_team_t team);
Status destroy_all_contexts();

}  // namespace weft::api
