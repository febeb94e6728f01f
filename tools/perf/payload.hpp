// The bytes that travel under --verify. Each message has contents of its own, made from its source,
// its destination, its iteration and the offset, so that data of another message, of an earlier
// iteration or at another place is found as surely as data that never came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/perf/sizes.hpp"

namespace weft::perf {

inline constexpr std::byte kPoison{0xA5};

void fill_payload(std::span<std::byte> bytes, const MessageId& id);
void fill_poison(std::span<std::byte> bytes);

struct PayloadCheck {
  std::size_t wrong_bytes = 0;
  std::size_t first_wrong_offset = 0;

  [[nodiscard]] bool is_right() const { return wrong_bytes == 0; }
};

// Looks at every byte.
[[nodiscard]] PayloadCheck check_payload(std::span<const std::byte> bytes, const MessageId& id);

}  // namespace weft::perf
