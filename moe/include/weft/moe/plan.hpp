// From routing to places: which ranks a token goes to, in which slot of each, and in which row of
// an expert it ends. Everything follows from the ids alone, without atomics, so it is the same in
// every run, on the host and on the GPU.
//
//   ids of a token -> ranks           goes_to, rank_mask   one row for each (token, rank), however
//                                                          many experts
//   bits of a rank -> slot of a token slot_of              popcount of the bits of earlier tokens
//   (source, slot, lane) -> position  first_position       sources in order, then slots, then lanes
//   (expert, position) -> row         padded_row, compact_offset
//
// A lane is a place in a token's list of `topk` ids; an id below 0 is no route. A token that names
// an expert twice has one row there, that of the first such lane.
//
// Pure functions, for host and device.
#ifndef WEFT_MOE_PLAN_HPP
#define WEFT_MOE_PLAN_HPP

#include <weft/device/host_device.hpp>
#include <weft/moe/experts.hpp>

#include <cstdint>

namespace weft {
namespace moe {

// Whether a caller may give this id: that of an expert, or -1 for none.
WEFT_HOST_DEVICE inline bool is_allowed(std::int64_t id, std::int32_t experts) {
  return id >= -1 && id < experts;
}

// One token's choice.
struct Route {
  const std::int32_t* ids;
  std::int32_t topk;

  // Whether no earlier lane names the same expert.
  WEFT_HOST_DEVICE bool is_first(std::int32_t lane) const {
    for (std::int32_t earlier = 0; earlier < lane; ++earlier) {
      if (ids[earlier] == ids[lane]) {
        return false;
      }
    }
    return true;
  }

  // The first lane with the expert of `lane`.
  WEFT_HOST_DEVICE std::int32_t first_lane(std::int32_t lane) const {
    std::int32_t first = 0;
    while (ids[first] != ids[lane]) {
      ++first;
    }
    return first;
  }
};

WEFT_HOST_DEVICE inline bool goes_to(const Route& route, const ExpertMap& map, std::int32_t rank) {
  for (std::int32_t lane = 0; lane < route.topk; ++lane) {
    if (map.owns(rank, route.ids[lane])) {
      return true;
    }
  }
  return false;
}

// Bit i: the token goes to rank `first_rank` + i.
WEFT_HOST_DEVICE inline std::uint64_t rank_mask(const Route& route,
                                                const ExpertMap& map,
                                                std::int32_t first_rank) {
  std::uint64_t mask = 0;
  for (std::int32_t lane = 0; lane < route.topk; ++lane) {
    if (route.ids[lane] >= 0) {
      const std::int32_t bit = map.rank_of(route.ids[lane]) - first_rank;
      mask |= bit >= 0 && bit < 64 ? std::uint64_t{1} << bit : 0;
    }
  }
  return mask;
}

// The number of different experts of `rank` that the token names: its rows there when each expert's
// row travels alone.
WEFT_HOST_DEVICE inline std::int32_t expert_rows_at(const Route& route,
                                                    const ExpertMap& map,
                                                    std::int32_t rank) {
  std::int32_t rows = 0;
  for (std::int32_t lane = 0; lane < route.topk; ++lane) {
    rows += map.owns(rank, route.ids[lane]) && route.is_first(lane) ? 1 : 0;
  }
  return rows;
}

WEFT_HOST_DEVICE inline std::int32_t popcount(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __popcll(word);
#else
  return __builtin_popcountll(word);
#endif
}

// 64 tokens in each word: bit t % 64 of word t / 64 says that token t goes to the rank whose words
// these are. The slot is the number of earlier tokens that go there.
WEFT_HOST_DEVICE inline std::int32_t slot_of(const std::uint64_t* words, std::int32_t token) {
  std::int32_t slot = 0;
  for (std::int32_t word = 0; word < token / 64; ++word) {
    slot += popcount(words[word]);
  }
  const std::uint64_t earlier = (std::uint64_t{1} << (token % 64)) - 1;
  return token % 64 == 0 ? slot : slot + popcount(words[token / 64] & earlier);
}

WEFT_HOST_DEVICE inline bool has_token(const std::uint64_t* words, std::int32_t token) {
  return (words[token / 64] >> (token % 64) & 1) != 0;
}

// The first position, among the rows of `expert`, of those that come from `source`: behind the rows
// of lower sources. counts[source * experts + expert] are rows.
WEFT_HOST_DEVICE inline std::int32_t first_position(const std::int32_t* counts,
                                                    std::int32_t experts,
                                                    std::int32_t source,
                                                    std::int32_t expert) {
  std::int32_t position = 0;
  for (std::int32_t lower = 0; lower < source; ++lower) {
    position += counts[lower * experts + expert];
  }
  return position;
}

WEFT_HOST_DEVICE inline std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Layout expert_padded: every expert has room for `capacity` rows.
WEFT_HOST_DEVICE inline std::int64_t padded_row(std::int32_t expert,
                                                std::int64_t capacity,
                                                std::int32_t position) {
  return expert * capacity + position;
}

// Layout expert_compact: where the rows of `expert` begin, each expert at a multiple of
// `alignment`. For expert == the number of experts: the number of rows.
WEFT_HOST_DEVICE inline std::int64_t compact_offset(const std::int32_t* counts,
                                                    std::int32_t expert,
                                                    std::int64_t alignment) {
  std::int64_t offset = 0;
  for (std::int32_t lower = 0; lower < expert; ++lower) {
    offset += align_up(counts[lower], alignment);
  }
  return offset;
}

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_PLAN_HPP
