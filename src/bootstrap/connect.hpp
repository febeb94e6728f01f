// How connect() selects the method; separate so that tests can supply their own environment.
//
// Any thread; the result depends only on the arguments.
// The public connect() of bootstrap.hpp uses it with the process environment.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

enum class Method { Tcp, Pmix, Torchrun, Single };

// Pure. Throws Error (InvalidArgument) naming the environment variables that the method chosen by WEFT_BOOTSTRAP
// requires and that are not set.
[[nodiscard]] Method choose_method(const Config& config, const Lookup& lookup);

[[nodiscard]] std::unique_ptr<Bootstrap> connect(const Config& config, const Lookup& lookup);

}  // namespace weft::bootstrap
