// The sizes of an exchange in GPU memory, and what they must not be. Both follow from the configuration, the team and the nodes
// of its PEs, so all PEs find the same.
//
// Threads: any.
#pragma once

#include <weft/moe.h>

#include <string>

#include "src/gpu/moe.hpp"

namespace weft::moe::engine {

[[nodiscard]] gpu::moe::Shape gpu_shape(const weft_moe_config& config);
// What keeps an exchange of such sizes off this PE's GPU; empty if nothing does.
[[nodiscard]] std::string gpu_error(const weft_moe_config& config);

}  // namespace weft::moe::engine
