// What PEs reduce under --verify, and what must come of it. Values are such that every order of
// evaluation gives the same bits: integers wrap, floating-point sums are of small whole numbers,
// products of powers of two (times i, for complex numbers). Pure.
#pragma once

#include <weft/collectives.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/perf/payload.hpp"

namespace weft::perf {

[[nodiscard]] std::size_t size_of(weft_type type);

// Bits of integers only; no order of complex numbers.
[[nodiscard]] bool is_allowed(weft_reduction reduction, weft_type type);

struct ReductionCase {
  weft_type type = WEFT_INT32;
  weft_reduction reduction = WEFT_SUM;
  std::uint64_t round = 0;  // each has values of its own
};

// The contribution of `pe`; `bytes` holds whole elements and is aligned for them.
void fill_contribution(std::span<std::byte> bytes, const ReductionCase& what, std::uint32_t pe);

// Looks at every element; a wrong one counts with all its bytes.
[[nodiscard]] PayloadCheck check_reduction(std::span<const std::byte> bytes,
                                           const ReductionCase& what,
                                           std::uint32_t pe_count);

}  // namespace weft::perf
