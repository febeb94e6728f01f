// The words of -d, -a and -o, and what they stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/perf/options.hpp"

namespace weft::perf {

// Throw std::invalid_argument with a sentence that lists the words.
[[nodiscard]] ElementType parse_type(std::string_view name);
[[nodiscard]] AtomicKind parse_atomic(std::string_view name);
// None for "all".
[[nodiscard]] std::optional<weft_reduction> parse_reduction(std::string_view name);

// For help and messages.
[[nodiscard]] std::string type_names();
[[nodiscard]] std::string atomic_names();
[[nodiscard]] std::string reduction_names();
[[nodiscard]] std::string_view name_of(AtomicKind kind);
[[nodiscard]] std::string_view name_of(weft_reduction reduction);

// "32-bit", as NVSHMEM's tables say.
[[nodiscard]] std::string width_of(const ElementType& type);

}  // namespace weft::perf
