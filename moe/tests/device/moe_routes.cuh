// Checks of what programs ask besides a dispatch, against counts made here: where tokens go, and
// which experts the rows name.
//
// Host code; one PE's main thread.
#pragma once

#include <weft/moe/experts.hpp>

#include <set>

#include "moe/tests/device/moe_pair.cuh"

namespace suite::moe {

// The experts that token or row number `at` names, each once.
template <typename Id>
std::set<int> named(const std::vector<Id>& ids, std::size_t at, std::size_t lanes, int experts) {
  std::set<int> found;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto id = static_cast<std::int64_t>(ids[at * lanes + lane]);
    if (id >= 0 && id < experts) {
      found.insert(static_cast<int>(id));
    }
  }
  return found;
}

// Where `tokens` go, among `ranks`.
inline void compare_destinations(const Sizes& sizes,
                                 const std::vector<std::int64_t>& ids,
                                 int tokens,
                                 int ranks,
                                 const char* what) {
  std::vector<std::int32_t> of_rank(static_cast<std::size_t>(ranks));
  std::vector<std::int32_t> of_expert(static_cast<std::size_t>(sizes.experts));
  std::vector<std::uint8_t> is_in_rank(static_cast<std::size_t>(tokens * ranks));
  const weft::moe::ExpertMap map(sizes.experts, ranks);
  for (int token = 0; token < tokens; ++token) {
    for (const int expert : named(ids, static_cast<std::size_t>(token),
                                  static_cast<std::size_t>(sizes.topk), sizes.experts)) {
      ++of_expert[static_cast<std::size_t>(expert)];
      is_in_rank[static_cast<std::size_t>(token * ranks + map.rank_of(expert))] = 1;
    }
  }
  for (std::size_t i = 0; i < is_in_rank.size(); ++i) {
    of_rank[i % of_rank.size()] += is_in_rank[i];
  }
  const OnGpu<std::int64_t> given(ids);
  Array<std::int32_t> ranks_found(of_rank.size(), Where::Own);
  Array<std::int32_t> experts_found(of_expert.size(), Where::Own);
  Array<std::uint8_t> in_rank_found(is_in_rank.size() + 1, Where::Own);
  const weft_moe_destinations destinations{
      tokens,      sizes.topk,        sizes.experts,       ranks,
      given.get(), ranks_found.get(), experts_found.get(), in_rank_found.get()};
  suite::require_weft(weft_moe_count_destinations_on_stream(&destinations, nullptr),
                      "weft_moe_count_destinations_on_stream");
  suite::require_cuda(cudaDeviceSynchronize(), "weft_moe_count_destinations_on_stream");
  std::vector<std::uint8_t> in_rank = in_rank_found.read();
  in_rank.pop_back();
  if (ranks_found.read() != of_rank || experts_found.read() != of_expert || in_rank != is_in_rank) {
    suite::fail("%s: the destinations of %d tokens among %d ranks differ", what, tokens, ranks);
  }
}

// Of a dispatch in WEFT_MOE_RANK_COMPACT: `expected` rows, more of them than came, and a part.
inline void compare_row_routes(const Pair& pair,
                               const Received& expected,
                               GpuDispatch& gpu,
                               const char* what) {
  const std::size_t lanes = Received::lanes(pair);
  const auto came = static_cast<std::size_t>(expected.offsets.back());
  for (const std::size_t rows : {pair.shape().rows_max + 3, came / 2}) {
    std::vector<std::int64_t> ids(rows * lanes, -1);
    std::vector<float> weights(rows * lanes, 0);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(pair.shape().local_experts) + 1);
    for (std::size_t row = 0; row < came; ++row) {
      for (const int expert : named(expected.ids, row, lanes, pair.shape().local_experts)) {
        ++counts[static_cast<std::size_t>(expert)];
      }
    }
    counts.back() = static_cast<std::int64_t>(came);
    for (std::size_t i = 0; i < std::min(rows, came) * lanes; ++i) {
      ids[i] = expected.ids[i];
      weights[i] = ids[i] < 0 ? 0 : expected.weights[i];
    }
    Array<std::int64_t> ids_found(ids.size() + 1, Where::Own);
    Array<float> weights_found(weights.size() + 1, Where::Own);
    Array<std::int64_t> counts_found(counts.size(), Where::Own);
    const weft_moe_row_routes routes{static_cast<int>(rows), ids_found.get(), weights_found.get(),
                                     counts_found.get()};
    suite::require_weft(weft_moe_row_routes_on_stream(pair.device(), &gpu.rows(), &routes, nullptr),
                        "weft_moe_row_routes_on_stream");
    suite::require_cuda(cudaDeviceSynchronize(), "weft_moe_row_routes_on_stream");
    if (!same_bytes(ids_found.read().data(), ids.data(), ids.size() * sizeof(ids[0])) ||
        !same_bytes(weights_found.read().data(), weights.data(), weights.size() * 4) ||
        counts_found.read() != counts) {
      suite::fail("%s: the routes of %zu rows differ, of %zu that came", what, rows, came);
    }
  }
}

}  // namespace suite::moe
