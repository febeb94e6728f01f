// Shared by the C functions for collectives of teams and active sets: handles, overflow-safe sizes,
// and checks of both sides.
//
// Threads: any.
#pragma once

#include <weft/collectives.h>

#include <cstddef>
#include <cstdint>

#include "src/api/checks.hpp"
#include "src/collectives/collectives.hpp"

namespace weft::api {

// Both enumerations of types and reductions have the same values.
static_assert(static_cast<int>(collectives::ElementType::Int8) == WEFT_INT8 &&
              static_cast<int>(collectives::ElementType::Uint8) == WEFT_UINT8 &&
              static_cast<int>(collectives::ElementType::Float) == WEFT_FLOAT &&
              static_cast<int>(collectives::ElementType::ComplexDouble) == WEFT_COMPLEX_DOUBLE &&
              static_cast<int>(collectives::Reduction::And) == WEFT_AND &&
              static_cast<int>(collectives::Reduction::Min) == WEFT_MIN &&
              static_cast<int>(collectives::Reduction::Prod) == WEFT_PROD);

// Null if the handle is not a team of this PE.
[[nodiscard]] collectives::Team* team_of(runtime::Runtime& runtime, weft_team_t team);

// Ok if both are symmetric memory of this PE and, as far as WEFT_CHECK_LEVEL requires, do not
// overlap; otherwise the message is set.
[[nodiscard]] Status check_sides(const char* name, const Bytes& dest, const Bytes& source);

[[nodiscard]] inline collectives::Sides sides_of(const void* dest, const void* source) {
  return {static_cast<std::byte*>(const_cast<void*>(dest)), static_cast<const std::byte*>(source)};
}

// Larger than any heap on overflow.
[[nodiscard]] inline std::size_t times(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

[[nodiscard]] inline collectives::Strides strides_of(const weft_stride& stride) {
  return {.dest = static_cast<std::size_t>(stride.dest),
          .source = static_cast<std::size_t>(stride.source),
          .element_bytes = stride.element_bytes,
          .count = stride.count};
}

// The extent from the first to the last element of `blocks` strided blocks.
[[nodiscard]] inline std::size_t strided_bytes(const weft_stride& stride,
                                               std::ptrdiff_t step,
                                               std::size_t blocks) {
  const std::size_t count = times(stride.count, blocks);
  const auto width = static_cast<std::size_t>(step);
  return count == 0 ? 0 : times(times(count - 1, width) + 1, stride.element_bytes);
}

// combine is null if the type has no such reduction.
[[nodiscard]] inline collectives::Reducer reducer_of(weft_type type, weft_reduction reduction) {
  const auto element = static_cast<collectives::ElementType>(type);
  return {
      .combine = collectives::combine_for(element, static_cast<collectives::Reduction>(reduction)),
      .element_bytes = collectives::element_bytes(element)};
}

}  // namespace weft::api
