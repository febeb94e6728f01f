// The element types as the engine sees them: their sizes, and sums of rows in float (in double for
// F64), term by term in the order of the calls.
//
// Threads: any; a RowSum belongs to one.
#pragma once

#include <weft/moe.h>
#include <weft/moe/number.hpp>
#include <weft/moe/quantize.hpp>
#include <weft/moe/row.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace weft::moe::engine {

struct Bf16 {
  using Stored = std::uint16_t;
  using Sum = float;

  static Sum load(Stored value) { return from_bfloat16(value); }

  static Stored store(Sum value) { return bfloat16_of(value); }
};

struct F16 {
  using Stored = std::uint16_t;
  using Sum = float;

  static Sum load(Stored value) { return decode(half_format(), value); }

  static Stored store(Sum value) {
    return static_cast<std::uint16_t>(encode(half_format(), value));
  }
};

template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;

  static Sum load(Stored value) { return value; }

  static Stored store(Sum value) { return value; }
};

// Calls `body` with a value of the type's struct. Only for types that can be summed.
template <typename Body>
void with_type(weft_moe_type type, Body&& body) {
  switch (type) {
    case WEFT_MOE_BF16:
      return std::forward<Body>(body)(Bf16{});
    case WEFT_MOE_F16:
      return std::forward<Body>(body)(F16{});
    case WEFT_MOE_F32:
      return std::forward<Body>(body)(Plain<float>{});
    case WEFT_MOE_F64:
      return std::forward<Body>(body)(Plain<double>{});
    case WEFT_MOE_E4M3:
    case WEFT_MOE_E5M2:
    case WEFT_MOE_NVFP4:
      return;
  }
}

// One row of sums.
template <typename Type>
class RowSum {
 public:
  using Sum = typename Type::Sum;
  using Stored = typename Type::Stored;

  explicit RowSum(std::size_t hidden) : sums_(hidden) {}

  void clear() { std::fill(sums_.begin(), sums_.end(), Sum{0}); }

  void add(const std::byte* row) {
    const auto* values = reinterpret_cast<const Stored*>(row);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] += Type::load(values[i]);
    }
  }

  void add(const std::byte* row, float weight) {
    const auto* values = reinterpret_cast<const Stored*>(row);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] += static_cast<Sum>(weight) * Type::load(values[i]);
    }
  }

  // A row as Fp8Row lays it out.
  void add_fp8(const std::byte* row) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(row);
    const auto* scales = reinterpret_cast<const float*>(row + Fp8Row{sums_.size()}.scales_at());
    for (std::size_t begin = 0; begin < sums_.size(); begin += kScaleBlock) {
      const std::size_t end = std::min<std::size_t>(begin + kScaleBlock, sums_.size());
      const float scale = scales[begin / kScaleBlock];
      for (std::size_t i = begin; i < end; ++i) {
        sums_[i] += static_cast<Sum>(multiply(decode(e4m3_format(), codes[i]), scale));
      }
    }
  }

  void store_fp8(std::byte* row) const {
    auto* codes = reinterpret_cast<std::uint8_t*>(row);
    auto* scales = reinterpret_cast<float*>(row + Fp8Row{sums_.size()}.scales_at());
    std::array<float, kScaleBlock> values{};
    for (std::size_t begin = 0; begin < sums_.size(); begin += kScaleBlock) {
      const std::size_t count = std::min<std::size_t>(kScaleBlock, sums_.size() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(sums_[begin + i]);
      }
      scales[begin / kScaleBlock] = quantize_fp8(e4m3_format(), values.data(),
                                                 static_cast<std::int32_t>(count), codes + begin);
    }
  }

  [[nodiscard]] std::size_t bytes() const { return sums_.size() * sizeof(Sum); }

  // A row of sums, unrounded.
  void add_sums(const std::byte* row) {
    const auto* sums = reinterpret_cast<const Sum*>(row);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] += sums[i];
    }
  }

  void store_sums(std::byte* row) const { std::memcpy(row, sums_.data(), bytes()); }

  void store_as(bool is_fp8, std::byte* row) const {
    if (is_fp8) {
      store_fp8(row);
    } else {
      store(row);
    }
  }

  void store(std::byte* row) const {
    auto* values = reinterpret_cast<Stored*>(row);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      values[i] = Type::store(sums_[i]);
    }
  }

 private:
  std::vector<Sum> sums_;
};

[[nodiscard]] const char* name_of(weft_moe_type type);
// Of a whole row of `hidden` values.
[[nodiscard]] std::size_t row_bytes_of(weft_moe_type type, std::size_t hidden);
[[nodiscard]] std::size_t scale_bytes_of(weft_moe_scales scales, std::size_t hidden);
[[nodiscard]] bool is_quantized(weft_moe_type type);
// Whether the experts' rank sums before it sends.
[[nodiscard]] bool sums_at_experts(weft_moe_precision precision);
// Of a row of combine on its way.
[[nodiscard]] std::size_t partial_sum_bytes_of(weft_moe_type type,
                                               std::size_t hidden,
                                               weft_moe_precision precision);
// What keeps combine from the precision; empty if nothing does.
[[nodiscard]] std::string precision_error(weft_moe_type type,
                                          int hidden,
                                          weft_moe_precision precision);

}  // namespace weft::moe::engine
