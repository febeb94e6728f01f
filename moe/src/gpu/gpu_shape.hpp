// The sizes of an exchange in GPU memory, and what they must not be. Both follow from the
// configuration, the team and the nodes of its PEs, so all PEs find the same.
//
// Threads: any.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "moe/src/gpu/launchers.hpp"
#include "moe/src/plan/ranks.hpp"

namespace weft::moe::engine {

[[nodiscard]] gpu::Shape gpu_shape(const weft_moe_config& config, const Ranks& ranks);
// Before anything comes, behind so many dispatches. Returns when it is done.
void clear_polled(const gpu::Shape& shape, std::byte* memory, std::uint64_t dispatches);
// Where the experts may write what they make of the rows of dispatch `number`; null without
// outputs_in_place.
[[nodiscard]] std::byte* outputs_of(const gpu::Shape& shape,
                                    std::byte* memory,
                                    std::uint64_t number);
// If the rows of the call are such outputs, peers read them where they are. Throws Error for a part
// of them.
void find_outputs(const gpu::Shape& shape, const std::byte* memory, gpu::Combine& call);
// What keeps an exchange of such sizes off GPUs; empty if nothing does.
[[nodiscard]] std::string gpu_error(const weft_moe_config& config, const Ranks& ranks);

}  // namespace weft::moe::engine
