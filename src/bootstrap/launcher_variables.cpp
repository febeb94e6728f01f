#include "src/bootstrap/launcher_variables.hpp"

#include <charconv>
#include <optional>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

std::optional<std::uint32_t> parse(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional(number)
                                                                 : std::nullopt;
}

}  // namespace

std::string LauncherVariables::text(std::string_view name) const {
  const auto value = lookup_(name);
  if (!value || value->empty()) {
    fail(Status::InvalidArgument, "{} is not set; {}", name, hint_);
  }
  return *value;
}

std::uint32_t LauncherVariables::number(std::string_view name, std::uint32_t max) const {
  const std::string value = text(name);
  const auto number = parse(value);
  if (!number || *number > max) {
    fail(Status::InvalidArgument, "{}={}: a whole number from 0 to {} is wanted", name, value, max);
  }
  return *number;
}

std::uint32_t number_or_zero(const Lookup& lookup, std::string_view name) {
  const auto value = lookup(name);
  return value ? parse(*value).value_or(0) : 0;
}

}  // namespace weft::bootstrap
