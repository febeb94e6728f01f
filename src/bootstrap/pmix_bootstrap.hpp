// Joins a job through PMIx (https://pmix.github.io/standard, version 3 or later), as provided by OpenMPI's mpirun and
// `srun --mpi=pmix`.
//
// Always declared, so that callers need no #if; implemented only if libpmix was found.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

[[nodiscard]] bool pmix_is_built();

// Blocks until all PEs have joined. Throws Error: Timeout, PeerLost, or Internal with PMIx's error text.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_pmix(const Config& config);

}  // namespace weft::bootstrap
