// The user-visible names of the rail policies. src/transport/rails/policies.cpp implements them and
// asserts that the two tables agree. WEFT_RAIL_POLICY's errors, docs/ENV.md, `weft-info --env` and
// weft-top take names and descriptions from here.
//
// Constant; any thread.
#pragma once

#include <array>

#include "src/base/choice.hpp"

namespace weft {

inline constexpr std::string_view kDefaultRailPolicy = "balanced";

inline constexpr std::array kRailPolicies{
    Choice{"single", "Rail 0 to the peer's rail 0."},
    Choice{"coupled", "Rails in turn, each to the peer's rail of the same index."},
    Choice{"offset",
           "Rails in turn; the peer's rail is (this PE + the peer + operations so far) mod its "
           "rails."},
    Choice{"balanced",
           "The rail that would be done first; senders to one peer begin with different rails of "
           "it, and large operations are striped."},
    Choice{"aligned",
           "As balanced, but only between rails of the same index: for rail-optimized switches."},
};

}  // namespace weft
