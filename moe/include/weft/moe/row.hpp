// How one row lies in memory and on the wire: payload, scales, the token's ids and weights, its
// number at the source.
//
//   | payload | scales | ids: topk x int32 | weights: topk x float | token: int32 |
//   up to a multiple of 32 bytes
//
// On a GPU, topk x int32 stand before the token: the row's places among those that its source sends
// to each expert.
//
// Pure functions, for host and device.
#ifndef WEFT_MOE_ROW_HPP
#define WEFT_MOE_ROW_HPP

#include <weft/device/host_device.hpp>

#include <cstddef>
#include <cstdint>

namespace weft {
namespace moe {

constexpr std::size_t kRowAlignment = 32;

struct RowLayout {
  std::size_t payload_bytes;  // a multiple of 16
  std::size_t scale_bytes;
  std::size_t topk;
  std::size_t places = 0;  // on a GPU topk

  WEFT_HOST_DEVICE std::size_t scales_at() const { return payload_bytes; }

  WEFT_HOST_DEVICE std::size_t ids_at() const {
    return (payload_bytes + scale_bytes + 15) / 16 * 16;
  }

  WEFT_HOST_DEVICE std::size_t weights_at() const { return ids_at() + topk * sizeof(std::int32_t); }

  WEFT_HOST_DEVICE std::size_t places_at() const { return weights_at() + topk * sizeof(float); }

  WEFT_HOST_DEVICE std::size_t token_at() const {
    return places_at() + places * sizeof(std::int32_t);
  }

  WEFT_HOST_DEVICE std::size_t bytes() const {
    return (token_at() + sizeof(std::int32_t) + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  }
};

// How a row of combine travels with WEFT_MOE_FP8: e4m3 codes, then a float scale for each block of
// them.
struct Fp8Row {
  std::size_t hidden;  // a multiple of 16

  WEFT_HOST_DEVICE std::size_t scales_at() const { return hidden; }

  WEFT_HOST_DEVICE std::size_t bytes() const {
    const std::size_t blocks = (hidden + kBlock - 1) / kBlock;
    return (scales_at() + blocks * sizeof(float) + 15) / 16 * 16;
  }

  static constexpr std::size_t kBlock = 128;
};

// Where word `i` of the scales of row `index` stands that lie by column: [experts][words][column],
// `column` rows for each expert.
WEFT_HOST_DEVICE inline std::size_t word_by_column(std::uint32_t index,
                                                   std::size_t i,
                                                   std::size_t words,
                                                   std::uint32_t column) {
  const std::uint32_t expert = index / column;
  return (expert * words + i) * column + (index - expert * column);
}

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_ROW_HPP
