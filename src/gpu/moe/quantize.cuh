// The payload of a row, 16 bytes at a time: as the caller gave it, or quantised here with the arithmetic of
// weft/moe/quantize.hpp, bit for bit.
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/quantize.hpp>

#include "src/gpu/moe/exchange.cuh"

namespace weft::gpu::moe {

enum class Making { Copy, Fp8, Nvfp4 };

// `kCount` values, a multiple of 8, of bfloat16, half or float.
template <std::uint32_t kCount>
__device__ void load_values(weft_moe_type type,
                            const std::byte* row,
                            std::uint32_t first,
                            float (&values)[kCount]) {
  if (type == WEFT_MOE_F32) {
    const auto* from = reinterpret_cast<const Vector16*>(row + std::size_t{first} * sizeof(float));
#pragma unroll
    for (std::uint32_t i = 0; i < kCount / 4; ++i) {
      const Vector16 loaded = device::load_data(from + i);
      memcpy(&values[4 * i], &loaded, sizeof loaded);
    }
    return;
  }
  const auto* from =
      reinterpret_cast<const Vector16*>(row + std::size_t{first} * sizeof(std::uint16_t));
#pragma unroll
  for (std::uint32_t i = 0; i < kCount / 8; ++i) {
    const Vector16 loaded = device::load_data(from + i);
    std::uint16_t codes[8];
    memcpy(codes, &loaded, sizeof loaded);
#pragma unroll
    for (std::uint32_t j = 0; j < 8; ++j) {
      values[8 * i + j] = type == WEFT_MOE_BF16
                              ? weft::moe::from_bfloat16(codes[j])
                              : weft::moe::decode(weft::moe::half_format(), codes[j]);
    }
  }
}

// What the three kinds of payloads are made from.
struct Given {
  const Exchange& exchange;
  weft_moe_type type;
  const std::byte* row;
  std::byte* tail;  // where scales go
  float* largest;   // of each warp of the group

  __device__ Given(const Exchange& of,
                   const Dispatch& call,
                   std::uint32_t token,
                   std::byte* its_tail,
                   float* maxima)
      : exchange(of), type(call.type), row(call.x), tail(its_tail), largest(maxima) {
    const std::size_t value_bytes =
        type == WEFT_MOE_F32 ? sizeof(float) : sizeof(std::uint16_t);
    row += token * (type == of.payload ? of.shape.row.payload_bytes
                                       : std::size_t{of.shape.hidden} * value_bytes);
  }
};

template <Making kMaking>
struct Maker;

template <>
struct Maker<Making::Copy> : Given {
  using Given::Given;

  template <typename Store>
  __device__ void for_units(std::uint32_t units, Store&& store) const {
    constexpr std::uint32_t kTogether = 4;
    const auto* from = reinterpret_cast<const Vector16*>(row);
    for (std::uint32_t first = Group::thread(); first < units; first += kTogether * kGroup) {
      Vector16 loaded[kTogether];
#pragma unroll
      for (std::uint32_t i = 0; i < kTogether; ++i) {
        if (first + i * kGroup < units) {
          loaded[i] = device::load_data(from + first + i * kGroup);
        }
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kTogether; ++i) {
        if (first + i * kGroup < units) {
          store(first + i * kGroup, loaded[i]);
        }
      }
    }
  }
};

// A thread makes 16 codes; 8 neighbours share a scale.
template <>
struct Maker<Making::Fp8> : Given {
  using Given::Given;

  static constexpr std::uint32_t kValues = 16;
  static constexpr std::uint32_t kSharers = weft::moe::kScaleBlock / kValues;

  template <typename Store>
  __device__ void for_units(std::uint32_t units, Store&& store) const {
    namespace wm = weft::moe;
    const wm::SmallFormat format =
        exchange.payload == WEFT_MOE_E4M3 ? wm::e4m3_format() : wm::e5m2_format();
    for (std::uint32_t first = 0; first < units; first += kGroup) {
      const std::uint32_t unit = first + Group::thread();
      float values[kValues] = {};
      if (unit < units) {
        load_values(type, row, unit * kValues, values);
      }
      float most = wm::largest_of(values, kValues);
#pragma unroll
      for (std::uint32_t distance = 1; distance < kSharers; distance *= 2) {
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, static_cast<int>(distance)));
      }
      const float scale = scale_of(most, wm::reach_of(format));
      alignas(16) std::uint8_t codes[kValues];
      wm::encode_block(format, values, kValues, scale, codes);
      if (unit < units) {
        Vector16 made;
        memcpy(&made, codes, sizeof made);
        store(unit, made);
        if (unit % kSharers == 0) {
          keep_scale(unit / kSharers, scale);
        }
      }
    }
  }

 private:
  __device__ float scale_of(float most, float reach) const {
    if (exchange.scales == WEFT_MOE_SCALES_NONE) {
      return 1.0F;
    }
    const float scale = weft::moe::scale_for(most, reach);
    return exchange.scales == WEFT_MOE_SCALES_F32
               ? scale
               : weft::moe::from_ue8m0(weft::moe::ue8m0_of(scale));
  }

  __device__ void keep_scale(std::uint32_t block, float scale) const {
    if (exchange.scales == WEFT_MOE_SCALES_F32) {
      *at<float>(tail, block * sizeof(float)) = scale;
    } else if (exchange.scales == WEFT_MOE_SCALES_UE8M0) {
      tail[block] = static_cast<std::byte>(weft::moe::ue8m0_of(scale));
    }
  }
};

// A thread makes two blocks of 16, after the whole row's largest is known.
template <>
struct Maker<Making::Nvfp4> : Given {
  using Given::Given;

  static constexpr std::uint32_t kValues = 32;

  template <typename Store>
  __device__ void for_units(std::uint32_t units, Store&& store) const {
    namespace wm = weft::moe;
    const float row_scale = wm::scale_for(largest_of_row(units), wm::multiply(6.0F, 448.0F));
    for (std::uint32_t unit = Group::thread(); unit < units; unit += kGroup) {
      float values[kValues];
      load_values(type, row, unit * kValues, values);
      alignas(16) std::uint8_t pairs[kValues / 2];
      for (std::uint32_t block = 0; block < 2; ++block) {
        tail[2 * unit + block] = static_cast<std::byte>(wm::quantize_nvfp4(
            &values[block * wm::kNvfp4Block], row_scale, &pairs[block * wm::kNvfp4Block / 2]));
      }
      Vector16 made;
      memcpy(&made, pairs, sizeof made);
      store(unit, made);
    }
    if (Group::thread() == 0) {
      const std::uint32_t padded = (2 * units + 3) / 4 * 4;
      for (std::uint32_t i = 2 * units; i < padded; ++i) {
        tail[i] = std::byte{0};
      }
      *at<float>(tail, padded) = row_scale;
    }
  }

 private:
  __device__ float largest_of_row(std::uint32_t units) const {
    float most = 0;
    for (std::uint32_t unit = Group::thread(); unit < units; unit += kGroup) {
      float values[kValues];
      load_values(type, row, unit * kValues, values);
      most = fmaxf(most, weft::moe::largest_of(values, kValues));
    }
    for (int distance = 1; distance < static_cast<int>(kWarp); distance *= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
    }
    if (lane() == 0) {
      largest[Group::warp()] = most;
    }
    Group::sync();
    for (std::uint32_t warp = 0; warp < kGroup / kWarp; ++warp) {
      most = fmaxf(most, largest[warp]);
    }
    return most;
  }
};

}  // namespace weft::gpu::moe
