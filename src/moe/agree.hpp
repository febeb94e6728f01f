// What all PEs of the job find out about each other before an exchange takes memory: whether the PEs of each team gave
// the same configuration, and how much memory the largest team needs. So all of them fail, or none.
//
// Collective over all PEs of the job. Threads: one.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <string>

namespace weft::moe::engine {

// `error`: why this PE cannot take part, or "". Returns the bytes that all PEs allocate. Throws Error: on this PE its
// own error, on the others one that names a PE.
[[nodiscard]] std::size_t agree(const weft_moe_config& config,
                                std::size_t bytes,
                                const std::string& error);

}  // namespace weft::moe::engine
