// What each layout of received rows is (weft_moe_layout), and how many rows it may have: the one
// place that tells one from another by more than its own code. A new value is a case in each
// switch; the compiler names those that lack it.
//
// Pure functions; those before Layout for host and device.
#ifndef WEFT_MOE_LAYOUTS_HPP
#define WEFT_MOE_LAYOUTS_HPP

#include <weft/device/host_device.hpp>
#include <weft/moe.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft {
namespace moe {

// A token has one row, and counts are by source rank; else it has one for each of its experts here,
// and counts are by local expert. This and the next are functions of their own, as a kernel that
// looks up a struct has other instructions.
WEFT_HOST_DEVICE constexpr bool is_by_rank(weft_moe_layout value) {
  switch (value) {
    case WEFT_MOE_RANK_MAJOR:
    case WEFT_MOE_RANK_COMPACT:
      return true;
    case WEFT_MOE_EXPERT_PADDED:
    case WEFT_MOE_EXPERT_COMPACT:
      break;
  }
  return false;
}

// Rows are shown where they arrive, in the memory of the exchange.
WEFT_HOST_DEVICE constexpr bool is_in_place(weft_moe_layout value) {
  switch (value) {
    case WEFT_MOE_RANK_MAJOR:
      return true;
    case WEFT_MOE_RANK_COMPACT:
    case WEFT_MOE_EXPERT_PADDED:
    case WEFT_MOE_EXPERT_COMPACT:
      break;
  }
  return false;
}

struct Layout {
  const char* name = nullptr;  // as in Python; null: the value is none of weft_moe_layout
  bool is_by_rank = false;
  bool is_in_place = false;
  bool is_padded = false;   // each rank or expert has room for the same number of rows
  bool is_aligned = false;  // each begins at a multiple of weft_moe_config.alignment
};

constexpr Layout layout_of(weft_moe_layout value) {
  const auto with = [value](const char* name, bool is_padded, bool is_aligned) {
    return Layout{name, is_by_rank(value), is_in_place(value), is_padded, is_aligned};
  };
  switch (value) {
    case WEFT_MOE_RANK_MAJOR:
      return with("rank_major", true, false);
    case WEFT_MOE_RANK_COMPACT:
      return with("rank_compact", false, false);
    case WEFT_MOE_EXPERT_PADDED:
      return with("expert_padded", true, false);
    case WEFT_MOE_EXPERT_COMPACT:
      return with("expert_compact", false, true);
  }
  return {};
}

// visit(value, layout) for all of them. Their values are consecutive.
template <typename Visit>
void for_layouts(Visit&& visit) {
  for (int value = WEFT_MOE_RANK_MAJOR;; ++value) {
    const Layout layout = layout_of(static_cast<weft_moe_layout>(value));
    if (layout.name == nullptr) {
      return;
    }
    visit(value, layout);
  }
}

// The most rows of x on one of `ranks` ranks, which has `local_experts` experts.
inline std::size_t most_rows(const weft_moe_config& config,
                             std::size_t ranks,
                             std::int32_t local_experts) {
  const Layout layout = layout_of(config.layout);
  const std::size_t arrivals = ranks * static_cast<std::size_t>(config.max_tokens);
  if (layout.is_by_rank) {
    return arrivals;
  }
  const std::int32_t rows_of_token =
      layout.is_padded ? local_experts : std::min<std::int32_t>(local_experts, config.topk);
  const int gap = layout.is_aligned ? config.alignment - 1 : 0;  // behind each expert, at most
  return arrivals * static_cast<std::size_t>(rows_of_token) +
         static_cast<std::size_t>(local_experts) * static_cast<std::size_t>(gap);
}

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_LAYOUTS_HPP
