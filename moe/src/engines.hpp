// Which of the two implementations an exchange has, and what one of a config needs. One is made for
// a weft_moe_t (api.cpp), which owns it.
//
// Threads: any.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <memory>
#include <string>

#include "moe/src/plan/engine.hpp"
#include "moe/src/plan/ranks.hpp"

namespace weft::moe::engine {

// What is wrong with `config` in any job of such ranks; "" if nothing is.
[[nodiscard]] std::string config_error(const weft_moe_config& config, const Ranks& ranks);

// Of the symmetric memory that such an exchange works in. The config has no error.
[[nodiscard]] std::size_t memory_bytes(const weft_moe_config& config, const Ranks& ranks);

// Collective over the PEs of the job, with the memory that all agreed on (agree.hpp). nullptr on a
// PE that does not take part. Throws on all PEs if one cannot.
[[nodiscard]] std::unique_ptr<Engine> make_engine(const weft_moe_config& config,
                                                  bool shares_memory,
                                                  std::byte* memory);

// Checks the arrays, and enqueues the kernel. The numbers are those that require_destinations
// (validate.hpp) allows.
void count_destinations(const weft_moe_destinations& destinations, weft_stream_t stream);

}  // namespace weft::moe::engine
