// How connect() selects the method; separate so that tests can supply their own environment.
//
// Any thread; the result depends on the arguments, and on whether libpmix can be opened where they
// offer PMIx. The public connect() of bootstrap.hpp uses it with the process environment.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

enum class Method { Tcp, Pmix, Pmi, Slurm, Torchrun, Single };

// Throws Error (InvalidArgument) naming the environment variables that the method chosen by
// WEFT_BOOTSTRAP requires and that are not set, or, if none is chosen, the launcher that started
// several tasks in a way that none of the methods serves, or a part of weft-run's variables that
// came alone: PEs never become jobs of one each by accident.
[[nodiscard]] Method choose_method(const Config& config, const Lookup& lookup);

[[nodiscard]] std::unique_ptr<Bootstrap> connect(const Config& config, const Lookup& lookup);

}  // namespace weft::bootstrap
