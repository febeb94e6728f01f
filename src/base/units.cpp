#include "src/base/units.hpp"

#include <array>
#include <charconv>
#include <limits>

#include "src/base/error.hpp"

namespace weft {
namespace {

struct Unit {
  char letter;
  unsigned shift;
};

constexpr std::array kUnits{Unit{'T', 40}, Unit{'G', 30}, Unit{'M', 20}, Unit{'K', 10}};

constexpr char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

// The shift for a suffix, or -1.
int shift_of(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") {
    return 0;
  }
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "iB" && rest != "B" && rest != "ib" && rest != "b" && rest != "i") {
    return -1;
  }
  for (const Unit unit : kUnits) {
    if (upper(suffix.front()) == unit.letter) {
      return static_cast<int>(unit.shift);
    }
  }
  return -1;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  std::string_view suffix = text.substr(digits);
  while (!suffix.empty() && suffix.front() == ' ') {
    suffix.remove_prefix(1);
  }
  const int shift = code == std::errc{} ? shift_of(suffix) : -1;
  if (shift < 0) {
    fail(Status::InvalidArgument, "'{}' is not a size; write for example 4096, 64K, 1MiB or 2G",
         text);
  }
  if (number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    fail(Status::InvalidArgument, "'{}' does not fit into 64 bits", text);
  }
  return number << shift;
}

std::string format_bytes(std::uint64_t bytes) {
  for (const Unit unit : kUnits) {
    const std::uint64_t mask = (std::uint64_t{1} << unit.shift) - 1;
    if (bytes != 0 && (bytes & mask) == 0) {
      return fmt::format("{} {}iB", bytes >> unit.shift, unit.letter);
    }
  }
  return fmt::format("{} B", bytes);
}

}  // namespace weft
