// What the host asks for, in the words of the transport: codes of operations, lengths, operands.
//
// Pure; any thread. Of the host's structures only what it fills in is read, and what it passes is
// checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/heap/place.hpp"
#include "src/plugins/nvshmem/abi.hpp"
#include "src/transport/operation.hpp"

namespace weft::plugins::nvshmem {

// True if the caller wants the old value.
[[nodiscard]] constexpr bool fetches(int amo_code) {
  return amo_code > kAmoLastWithoutResult;
}

// Of one range or element; strides are 1.
[[nodiscard]] constexpr std::size_t bytes_of(const BytesDescription& range) {
  return range.element_count * static_cast<std::size_t>(range.element_bytes);
}

// `is_float` holds for codes 4 and 14 alone. Throws Error (InvalidArgument) for an unknown code or
// width.
[[nodiscard]] transport::AtomicUpdate update_of(const AmoVerbNew& verb,
                                                const AmoDescription& target,
                                                int element_bytes,
                                                heap::Place word);

// Of verbs before interface 6, which know no floating-point numbers.
[[nodiscard]] constexpr AmoVerbNew as_new(const AmoVerbOld& verb) {
  return {.code = verb.code, .is_fetch = 0, .is_value = 0, .is_compare = 0, .is_float = 0};
}

[[nodiscard]] constexpr const AmoVerbNew& as_new(const AmoVerbNew& verb) {
  return verb;
}

}  // namespace weft::plugins::nvshmem
