// How connect() chooses; apart from it so that tests can give it an environment of their own.
//
// Any thread; the choice depends on nothing but its arguments.
// The public connect() of bootstrap.hpp is this with the process environment.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

enum class Method { Tcp, Pmix, Torchrun, Single };

// Pure. Throws Error (InvalidArgument) naming the variables that a method chosen by WEFT_BOOTSTRAP
// needs and the environment lacks.
[[nodiscard]] Method choose_method(const Config& config, const Lookup& lookup);

[[nodiscard]] std::unique_ptr<Bootstrap> connect(const Config& config, const Lookup& lookup);

}  // namespace weft::bootstrap
