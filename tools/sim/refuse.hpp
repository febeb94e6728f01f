// How weft-sim refuses what it was asked for: one sentence that says what to do.
//
// Any thread.
#pragma once

#include <utility>

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace weft::sim {

// Throws Error (InvalidArgument).
template <typename... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> format, Values&&... values) {
  fail(Status::InvalidArgument, format, std::forward<Values>(values)...);
}

}  // namespace weft::sim
