// What all PEs of the job find out about each other before an exchange takes memory: whether the
// PEs of each team gave the same configuration, and how much memory the largest team needs. So all
// of them fail, or none.
//
// Collective over all PEs of the job. Threads: one.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <string>

namespace weft::moe::engine {

struct Agreement {
  std::size_t bytes = 0;  // that all PEs allocate
  bool shares_memory =
      false;  // whether all PEs of this PE's team have the memory of those of their node mapped
};

// `error`: why this PE cannot take part, or "". Throws Error: on this PE its own error, on the
// others one that names a PE.
[[nodiscard]] Agreement agree(const weft_moe_config& config,
                              std::size_t bytes,
                              const std::string& error);

}  // namespace weft::moe::engine
