// Reads the variables that a launcher sets for its processes: one error for each way in which they
// can be wrong, which names the variable and who should have set it.
//
// Any thread; the result depends only on the lookup.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "src/base/config.hpp"

namespace weft::bootstrap {

inline constexpr std::uint32_t kPesMax = std::numeric_limits<std::int32_t>::max();

class LauncherVariables {
 public:
  // `hint` ends the message about a variable that is not set: who sets it, and what to do.
  LauncherVariables(const Lookup& lookup, std::string_view hint) : lookup_(lookup), hint_(hint) {}

  // Both throw Error (InvalidArgument) naming the variable.
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] std::uint32_t number(std::string_view name, std::uint32_t max) const;

 private:
  const Lookup& lookup_;
  std::string_view hint_;
};

// A whole number, or 0 if the variable is not set or is something else.
[[nodiscard]] std::uint32_t number_or_zero(const Lookup& lookup, std::string_view name);

}  // namespace weft::bootstrap
