#include "moe/src/plan/element.hpp"

#include <fmt/format.h>

namespace weft::moe::engine {

const char* name_of(weft_moe_type type) {
  switch (type) {
    case WEFT_MOE_BF16:
      return "bfloat16";
    case WEFT_MOE_F16:
      return "float16";
    case WEFT_MOE_F32:
      return "float32";
    case WEFT_MOE_F64:
      return "float64";
    case WEFT_MOE_E4M3:
      return "fp8 e4m3";
    case WEFT_MOE_E5M2:
      return "fp8 e5m2";
    case WEFT_MOE_NVFP4:
      return "nvfp4";
  }
  return "an unknown type";
}

bool is_quantized(weft_moe_type type) {
  return type == WEFT_MOE_E4M3 || type == WEFT_MOE_E5M2 || type == WEFT_MOE_NVFP4;
}

bool sums_at_experts(weft_moe_precision precision) {
  return precision == WEFT_MOE_REDUCED || precision == WEFT_MOE_FP8;
}

std::size_t partial_sum_bytes_of(weft_moe_type type,
                                 std::size_t hidden,
                                 weft_moe_precision precision) {
  return precision == WEFT_MOE_FP8 ? Fp8Row{hidden}.bytes() : row_bytes_of(type, hidden);
}

std::string precision_error(weft_moe_type type, int hidden, weft_moe_precision precision) {
  if (precision != WEFT_MOE_FP8 || (type != WEFT_MOE_F64 && hidden % 16 == 0)) {
    return "";
  }
  return fmt::format(
      "precision 'fp8' is for rows of bfloat16, float16 or float32 with a multiple of 16 values, "
      "and "
      "these are {} of {}; use 'reduced'",
      hidden, name_of(type));
}

std::size_t row_bytes_of(weft_moe_type type, std::size_t hidden) {
  switch (type) {
    case WEFT_MOE_BF16:
    case WEFT_MOE_F16:
      return hidden * 2;
    case WEFT_MOE_F32:
      return hidden * 4;
    case WEFT_MOE_F64:
      return hidden * 8;
    case WEFT_MOE_E4M3:
    case WEFT_MOE_E5M2:
      return hidden;
    case WEFT_MOE_NVFP4:
      return hidden / 2;
  }
  return 0;
}

std::size_t scale_bytes_of(weft_moe_scales scales, std::size_t hidden) {
  const std::size_t blocks = (hidden + kScaleBlock - 1) / kScaleBlock;
  switch (scales) {
    case WEFT_MOE_SCALES_NONE:
      return 0;
    case WEFT_MOE_SCALES_F32:
      return blocks * sizeof(float);
    case WEFT_MOE_SCALES_UE8M0:
      return blocks;
    case WEFT_MOE_SCALES_NVFP4:
      return (hidden / kNvfp4Block + 3) / 4 * 4 + sizeof(float);
  }
  return 0;
}

}  // namespace weft::moe::engine
