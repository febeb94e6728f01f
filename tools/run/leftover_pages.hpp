// The counter pages that killed PEs leave in shared memory: whoever ends a job's processes removes
// them.
//
// One thread. Only pages of this user whose process is gone; of any job, since their file says no
// more.
#pragma once

#include "tools/run/job.hpp"

namespace weft::run {

// From the folder in which `job`'s PEs have them.
void remove_leftover_pages(const Job& job);

}  // namespace weft::run
