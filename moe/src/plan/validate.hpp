// The checks that exchanges on CPUs and on GPUs share: each sentence about a wrong argument stands
// here, once. What only one of them can check (addresses of GPU memory, plans) is beside its calls.
//
// Threads: any. Functions named ..._error return what is wrong, or ""; those named require_...
// throw it as InvalidArgument.
#pragma once

#include <weft/moe.h>

#include <string>

namespace weft::moe::engine {

// Where an exchange is between its calls.
enum class Step { Idle, Dispatching, Combining };

// `call` needs the exchange to be in `wanted`.
void require_step(Step now, Step wanted, const char* call);

[[nodiscard]] std::string out_of_range(const char* name, int value, int least, int most);
void require_in_range(const char* name, int value, int least, int most);

// Of the fields themselves, for a team of `ranks`.
[[nodiscard]] std::string fields_error(const weft_moe_config& config, int ranks);

// Number and type of the rows of x, and whether their scales may be given.
void require_tokens(const weft_moe_config& config, const weft_moe_tokens& tokens);
// Precision and weighting, for rows of this layout and type.
void require_sum(const weft_moe_config& config, const weft_moe_outputs& outputs);
void require_destinations(const weft_moe_destinations& destinations);

}  // namespace weft::moe::engine
