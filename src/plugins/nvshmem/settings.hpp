// What the user has set: WEFT_* as in any job of Weft's, and those variables of NVSHMEM's own
// libfabric transport that have a counterpart here.
//
// Reads the environment, once, while the host connects endpoints.
#pragma once

#include "src/base/config.hpp"

namespace weft::plugins::nvshmem {

// Where both say something, WEFT_* holds. Throws Error for a value that does not parse.
[[nodiscard]] Config load_settings();

// The same from any source of variables. Pure.
void take_host_settings(Config& config, const Lookup& lookup);

// False if NVSHMEM_DISABLE_GDRCOPY is on, as NVSHMEM reads a truth value.
[[nodiscard]] bool may_use_gdrcopy();

}  // namespace weft::plugins::nvshmem
