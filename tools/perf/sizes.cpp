#include "tools/perf/sizes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace weft::perf {
namespace {

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::size_t parse_size(std::string_view text) {
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    const std::size_t suffix = std::string_view("KMG").find(
        static_cast<char>(digits.back() & ~0x20));  // lower case counts as upper case
    if (suffix != std::string_view::npos) {
      shift = static_cast<unsigned>(10 * (suffix + 1));
      digits.remove_suffix(1);
    }
  }
  std::size_t number = 0;
  if (!parse_number(digits, number) || (number << shift) >> shift != number) {
    throw std::invalid_argument(fmt::format("'{}' is not a size; write 8, 64K, 1M or 1G", text));
  }
  return number << shift;
}

std::vector<std::size_t> size_sequence(const SizeRange& range) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = range.begin; size <= range.end; size *= range.factor) {
    sizes.push_back(size);
    if (size > range.end / range.factor) {
      break;
    }
  }
  return sizes;
}

// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

std::uint64_t key_of(const MessageId& id, std::uint64_t seed) {
  const std::uint64_t pair = (std::uint64_t{id.source} << 32U) | id.dest;
  return mix(mix(mix(seed) ^ pair) ^ id.iteration);
}

std::size_t SizeRule::size_of(const MessageId& id, std::size_t row_size) const {
  if (!pareto || row_size <= 1) {
    return row_size;
  }
  // 53 bits make a double in (0, 1].
  const double uniform = static_cast<double>((key_of(id, seed) >> 11U) + 1) * 0x1p-53;
  const double smallest =
      std::max(1.0, static_cast<double>(row_size) / static_cast<double>(kParetoSpan));
  const double size = smallest * std::pow(uniform, -1.0 / alpha);
  return size >= static_cast<double>(row_size) ? row_size : static_cast<std::size_t>(size);
}

SizeRule parse_size_rule(std::string_view text) {
  SizeRule rule;
  if (text == "fixed") {
    return rule;
  }
  const auto fail = [&]() -> SizeRule {
    throw std::invalid_argument(
        fmt::format("--sizes {}: use fixed or pareto:ALPHA:SEED, for example pareto:1.2:7", text));
  };
  if (!text.starts_with("pareto:")) {
    return fail();
  }
  const std::string_view rest = text.substr(7);
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos || !parse_number(rest.substr(0, colon), rule.alpha) ||
      !parse_number(rest.substr(colon + 1), rule.seed) || !(rule.alpha > 0)) {
    return fail();
  }
  rule.pareto = true;
  return rule;
}

}  // namespace weft::perf
