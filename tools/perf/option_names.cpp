#include "tools/perf/option_names.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/perf/reduction_values.hpp"

namespace weft::perf {
namespace {

using namespace std::string_view_literals;

constexpr std::array kTypes{
    std::pair{"int8"sv, WEFT_INT8},
    std::pair{"uint8"sv, WEFT_UINT8},
    std::pair{"int16"sv, WEFT_INT16},
    std::pair{"uint16"sv, WEFT_UINT16},
    std::pair{"int32"sv, WEFT_INT32},
    std::pair{"uint32"sv, WEFT_UINT32},
    std::pair{"int"sv, WEFT_INT32},
    std::pair{"int64"sv, WEFT_INT64},
    std::pair{"uint64"sv, WEFT_UINT64},
    std::pair{"float"sv, WEFT_FLOAT},
    std::pair{"double"sv, WEFT_DOUBLE},
    std::pair{"long_double"sv, WEFT_LONG_DOUBLE},
    std::pair{"complex_float"sv, WEFT_COMPLEX_FLOAT},
    std::pair{"complex_double"sv, WEFT_COMPLEX_DOUBLE},
};

constexpr std::array kReductions{
    std::pair{"and"sv, std::optional(WEFT_AND)},
    std::pair{"or"sv, std::optional(WEFT_OR)},
    std::pair{"xor"sv, std::optional(WEFT_XOR)},
    std::pair{"min"sv, std::optional(WEFT_MIN)},
    std::pair{"max"sv, std::optional(WEFT_MAX)},
    std::pair{"sum"sv, std::optional(WEFT_SUM)},
    std::pair{"prod"sv, std::optional(WEFT_PROD)},
    std::pair{"all"sv, std::optional<weft_reduction>()},
};

constexpr std::array kAtomics{
    std::pair{"set"sv, AtomicKind::Set},   std::pair{"fetch"sv, AtomicKind::Fetch},
    std::pair{"add"sv, AtomicKind::Add},   std::pair{"fetch_add"sv, AtomicKind::FetchAdd},
    std::pair{"inc"sv, AtomicKind::Inc},   std::pair{"fetch_inc"sv, AtomicKind::FetchInc},
    std::pair{"swap"sv, AtomicKind::Swap}, std::pair{"compare_swap"sv, AtomicKind::CompareSwap},
    std::pair{"and"sv, AtomicKind::And},   std::pair{"or"sv, AtomicKind::Or},
    std::pair{"xor"sv, AtomicKind::Xor},   std::pair{"all"sv, AtomicKind::All},
};

template <typename Table>
std::string names_of(const Table& table) {
  std::vector<std::string_view> names;
  names.reserve(table.size());
  for (const auto& entry : table) {
    names.push_back(entry.first);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

template <typename Table>
auto find_name(const Table& table, std::string_view option, std::string_view name) {
  const auto found = std::ranges::find(table, name, [](const auto& entry) { return entry.first; });
  if (found == table.end()) {
    throw std::invalid_argument(
        fmt::format("{} {}: no such name; use {}", option, name, names_of(table)));
  }
  return found->second;
}

}  // namespace

ElementType parse_type(std::string_view name) {
  const weft_type type = find_name(kTypes, "-d", name);
  return {.name = std::string(name), .bytes = size_of(type), .type = type};
}

AtomicKind parse_atomic(std::string_view name) {
  return find_name(kAtomics, "-a", name);
}

std::optional<weft_reduction> parse_reduction(std::string_view name) {
  return find_name(kReductions, "-o", name);
}

std::string type_names() {
  return names_of(kTypes);
}

std::string atomic_names() {
  return names_of(kAtomics);
}

std::string reduction_names() {
  return names_of(kReductions);
}

std::string_view name_of(AtomicKind kind) {
  return std::ranges::find(kAtomics, kind, [](const auto& entry) { return entry.second; })->first;
}

std::string_view name_of(weft_reduction reduction) {
  return std::ranges::find(kReductions, reduction, [](const auto& entry) { return entry.second; })
      ->first;
}

std::string width_of(const ElementType& type) {
  return fmt::format("{}-bit", 8 * type.bytes);
}

}  // namespace weft::perf
