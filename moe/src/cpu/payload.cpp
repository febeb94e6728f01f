#include "moe/src/cpu/payload.hpp"

#include <weft/moe/quantize.hpp>

#include <algorithm>
#include <cstring>

#include "moe/src/plan/element.hpp"

namespace weft::moe::engine {
namespace {

void load_row(weft_moe_type type, const std::byte* row, std::vector<float>& values) {
  with_type(type, [&]<typename Type>(Type /*type*/) {
    const auto* stored = reinterpret_cast<const typename Type::Stored*>(row);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(Type::load(stored[i]));
    }
  });
}

void quantize_fp8_row(const weft_moe_config& config,
                      const std::vector<float>& values,
                      std::byte* codes,
                      std::byte* scales) {
  const SmallFormat format = config.payload == WEFT_MOE_E4M3 ? e4m3_format() : e5m2_format();
  for (std::size_t begin = 0, block = 0; begin < values.size(); begin += kScaleBlock, ++block) {
    const auto count =
        static_cast<std::int32_t>(std::min<std::size_t>(kScaleBlock, values.size() - begin));
    auto* to = reinterpret_cast<std::uint8_t*>(codes) + begin;
    if (config.scales == WEFT_MOE_SCALES_UE8M0) {
      scales[block] = std::byte{quantize_fp8_ue8m0(format, &values[begin], count, to)};
    } else if (config.scales == WEFT_MOE_SCALES_F32) {
      const float scale = quantize_fp8(format, &values[begin], count, to);
      std::memcpy(scales + block * sizeof scale, &scale, sizeof scale);
    } else {
      encode_block(format, &values[begin], count, 1.0F, to);
    }
  }
}

void quantize_nvfp4_row(const std::vector<float>& values, std::byte* codes, std::byte* scales) {
  const float row_scale = nvfp4_row_scale(values.data(), static_cast<std::int32_t>(values.size()));
  const std::size_t blocks = values.size() / kNvfp4Block;
  for (std::size_t block = 0; block < blocks; ++block) {
    auto* pairs = reinterpret_cast<std::uint8_t*>(codes) + block * kNvfp4Block / 2;
    scales[block] = std::byte{quantize_nvfp4(&values[block * kNvfp4Block], row_scale, pairs)};
  }
  std::memcpy(scales + (blocks + 3) / 4 * 4, &row_scale, sizeof row_scale);
}

}  // namespace

Payload::Payload(const weft_moe_config& config, const weft_moe_tokens& tokens)
    : row_bytes_(row_bytes_of(config.payload, static_cast<std::size_t>(config.hidden))),
      scale_bytes_(scale_bytes_of(config.scales, static_cast<std::size_t>(config.hidden))),
      x_(static_cast<const std::byte*>(tokens.x)),
      scales_(static_cast<const std::byte*>(tokens.scales)) {
  if (tokens.type == config.payload) {
    return;
  }
  const auto count = static_cast<std::size_t>(tokens.count);
  const auto hidden = static_cast<std::size_t>(config.hidden);
  codes_.resize(count * row_bytes_);
  code_scales_.resize(count * scale_bytes_);
  std::vector<float> values(hidden);
  for (std::size_t token = 0; token < count; ++token) {
    load_row(tokens.type, x_ + token * row_bytes_of(tokens.type, hidden), values);
    std::byte* codes = codes_.data() + token * row_bytes_;
    std::byte* scales = code_scales_.data() + token * scale_bytes_;
    if (config.payload == WEFT_MOE_NVFP4) {
      quantize_nvfp4_row(values, codes, scales);
    } else {
      quantize_fp8_row(config, values, codes, scales);
    }
  }
  x_ = codes_.data();
  scales_ = code_scales_.data();
}

}  // namespace weft::moe::engine
