// libfabric's own variables by which a user, or an image, limits the providers and NICs that it
// offers. Where nothing is offered they are the likely cause, and libfabric does not say so.
//
// Any thread that may read the environment.
#pragma once

#include <string>

namespace weft::fabric {

// "; FI_PROVIDER=efa of the environment limits what libfabric offers: unset it"; "" if no such
// variable is set.
[[nodiscard]] std::string user_filter_hint();

}  // namespace weft::fabric
