// Joins a job through PMIx (https://pmix.github.io/standard, version 3 or later), as provided by
// OpenMPI's mpirun and `srun --mpi=pmix`.
//
// Always declared, so that callers need no #if; implemented only if pmix.h was found. The library
// is opened at run time.
#pragma once

#include <memory>
#include <string>

#include "src/base/config.hpp"
#include "src/base/library_search.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

[[nodiscard]] bool pmix_is_built();

// Opens libpmix, unless it is open: the file that WEFT_LIBPMIX names, or the first that serves of
// the loader's own search and the folders where sites keep it. Finding none is not an error here.
// Throws Error if another file is named than the one that this process has opened.
[[nodiscard]] LibrarySearch open_pmix(const Config& config);

// What the opened library says of itself.
[[nodiscard]] std::string pmix_version();

// After open_pmix has found it. Blocks until all PEs have joined. Throws Error: Timeout, PeerLost,
// or Internal with PMIx's error text.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_pmix(const Config& config);

}  // namespace weft::bootstrap
