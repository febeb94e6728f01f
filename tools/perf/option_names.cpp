#include "tools/perf/option_names.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft::perf {
namespace {

using namespace std::string_view_literals;

constexpr std::array kTypes{
    std::pair{"int8"sv, 1},   std::pair{"uint8"sv, 1},  std::pair{"int16"sv, 2},
    std::pair{"uint16"sv, 2}, std::pair{"int32"sv, 4},  std::pair{"uint32"sv, 4},
    std::pair{"int"sv, 4},    std::pair{"int64"sv, 8},  std::pair{"uint64"sv, 8},
    std::pair{"float"sv, 4},  std::pair{"double"sv, 8},
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
  return {.name = std::string(name),
          .bytes = static_cast<std::size_t>(find_name(kTypes, "-d", name))};
}

AtomicKind parse_atomic(std::string_view name) {
  return find_name(kAtomics, "-a", name);
}

std::string type_names() {
  return names_of(kTypes);
}

std::string atomic_names() {
  return names_of(kAtomics);
}

std::string_view name_of(AtomicKind kind) {
  return kAtomics[static_cast<std::size_t>(kind)].first;
}

std::string width_of(const ElementType& type) {
  return fmt::format("{}-bit", 8 * type.bytes);
}

}  // namespace weft::perf
