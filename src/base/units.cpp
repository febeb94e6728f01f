#include "src/base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
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

struct Fraction {
  double value = 0;  // below 1
  std::size_t characters = 0;
};

// ".5" at the begin of the text, if it is there.
Fraction parse_fraction(std::string_view text) {
  if (!text.starts_with('.')) {
    return {};
  }
  const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
  Fraction fraction{.characters = end};
  std::from_chars(text.data(), text.data() + end, fraction.value);  // "." alone leaves it 0
  return fraction;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [whole_end, code] = std::from_chars(text.data(), last, number);
  const Fraction fraction = parse_fraction({whole_end, last});
  std::string_view suffix = {whole_end + fraction.characters, last};
  while (!suffix.empty() && suffix.front() == ' ') {
    suffix.remove_prefix(1);
  }
  const int shift = code == std::errc{} ? shift_of(suffix) : -1;
  if (shift < 0 || (shift == 0 && fraction.value > 0)) {
    fail(Status::InvalidArgument, "'{}' is not a size; write for example 4096, 64K, 1.5M or 2GiB",
         shown(text));
  }
  if (number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    fail(Status::InvalidArgument, "'{}' does not fit into 64 bits", text);
  }
  return (number << shift) + static_cast<std::uint64_t>(std::ldexp(fraction.value, shift));
}

std::string shown(std::string_view text) {
  std::string all;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\r') {
      all += "\\r";
    } else if (c == '\n') {
      all += "\\n";
    } else if (code < 0x20 || code == 0x7F) {
      all += fmt::format("\\x{:02x}", code);
    } else {
      all += c;
    }
  }
  return all;
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
