// Joins a job through PMI-1, as provided by `srun --mpi=pmi2` and by Hydra (MPICH, Intel MPI),
// without a library.
//
// PE 0 hosts the rendezvous and puts its addresses and a random secret into the launcher's store,
// where only the job's processes can read them. After one PMI barrier the others get them. All else
// goes over the rendezvous.
//
// Threads: one at a time in a process, as init and finalize.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

// Whether a PMI launcher started this process as one of several.
[[nodiscard]] bool has_pmi_variables(const Lookup& lookup);

// Blocks until all PEs have joined. Throws Error: InvalidArgument naming the variable that is
// missing or invalid, or as connect() does. A PE that never comes is not named, because the
// launcher does not tell. A process may join again; the launcher is told of its end when it exits.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_pmi(const Config& config, const Lookup& lookup);

}  // namespace weft::bootstrap
