// Elementwise reductions: the semantics of each type and operation of weft/collectives.h, as one
// function on three arrays.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::collectives {

// The values of weft_type and weft_reduction in weft/collectives.h; src/api/teams.hpp asserts that
// they agree.
enum class ElementType : std::uint8_t {
  Int8 = 1,
  Int16,
  Int32,
  Int64,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Float,
  Double,
  LongDouble,
  ComplexFloat,
  ComplexDouble,
};

enum class Reduction : std::uint8_t { And = 1, Or, Xor, Min, Max, Sum, Prod };

// result[i] = a[i] op b[i] for `count` elements. `result` may be `a` or `b`.
using Combine = void (*)(void* result, const void* a, const void* b, std::size_t count);

// 0 if the type does not exist.
[[nodiscard]] std::size_t element_bytes(ElementType type);

// Null if the operation is not defined for the type, or if either does not exist.
[[nodiscard]] Combine combine_for(ElementType type, Reduction reduction);

// The element type, size and function of a reduction.
struct Reducer {
  Combine combine = nullptr;
  std::size_t element_bytes = 0;
};

}  // namespace weft::collectives
