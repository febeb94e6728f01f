// The formats of rows that are made on their way: fp8 and nvfp4 out of wider types. What a group of
// threads reads of the caller's rows and stores as the payload of a row, with its scales.
//
// Device code, by the threads of a group. Results have the bits of weft/moe/quantize.hpp.
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/quantize.hpp>

#include <cuda_fp16.h>

#include <type_traits>

#include "moe/src/gpu/kernels/sums.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Quantisation
//
// The payload of a row, 16 bytes at a time: as the caller gave it, or quantised here with the
// arithmetic of weft/moe/quantize.hpp, bit for bit.
//
// Device code: all threads of a group make a row together.

enum class Making { Copy, Fp8, Nvfp4 };

// Vectors of 16 bytes that hold 16 values.
template <bool kIsWide>
inline constexpr std::uint32_t kVectors = kIsWide ? 4 : 2;

// 16 values of bfloat16, half, or (wide) float.
template <bool kIsWide>
struct Sixteen {
  Vector16 vectors[kVectors<kIsWide>];

  __device__ void load(const std::byte* row, std::uint32_t index) {
    const auto* from = reinterpret_cast<const Vector16*>(row) + index * kVectors<kIsWide>;
#pragma unroll
    for (std::uint32_t i = 0; i < kVectors<kIsWide>; ++i) {
      vectors[i] = device::load_data(from + i);
    }
  }

  __device__ void widen(weft_moe_type type, float (&values)[16]) const {
    if constexpr (kIsWide) {
      memcpy(values, vectors, sizeof values);
    } else {
      std::uint16_t codes[16];
      memcpy(codes, vectors, sizeof codes);
      if (type == WEFT_MOE_BF16) {
#pragma unroll
        for (std::uint32_t i = 0; i < 16; ++i) {
          values[i] = weft::moe::from_bfloat16(codes[i]);
        }
      } else {
#pragma unroll
        for (std::uint32_t i = 0; i < 16; ++i) {
          values[i] = __half2float(__ushort_as_half(codes[i]));
        }
      }
    }
  }
};

// What the three kinds of payloads are made from: rows of the caller, one after the other.
struct Given {
  const KernelArguments& exchange;
  weft_moe_type type;
  const std::byte* first_row;
  std::size_t row_bytes;
  std::byte* tail;  // where scales go
  float* largest;   // of each warp of the group
  const std::byte* row = nullptr;

  __device__ Given(const KernelArguments& of,
                   const Dispatch& call,
                   std::byte* its_tail,
                   float* maxima)
      : exchange(of),
        type(call.type),
        first_row(call.x),
        row_bytes(type == of.payload
                      ? of.shape.row.payload_bytes
                      : std::size_t{of.shape.hidden} *
                            (type == WEFT_MOE_F32 ? sizeof(float) : sizeof(std::uint16_t))),
        tail(its_tail),
        largest(maxima) {}

  __device__ void go_to(std::uint32_t token) { row = first_row + token * row_bytes; }
};

template <Making kMaking>
struct Maker;

// begin(): what comes first of the token's row is on its way, before the caller goes on to
// for_units.
template <>
struct Maker<Making::Copy> : Given {
  using Given::Given;

  __device__ void begin(std::uint32_t token, std::uint32_t /*units*/) { go_to(token); }

  template <typename Store>
  __device__ void for_units(std::uint32_t units, Store&& store) const {
    for_units_loaded<Rows::BlockPerRow>(reinterpret_cast<const Vector16*>(row), units, store);
  }
};

// A thread makes 16 codes; 8 neighbours share a scale.
template <>
struct Maker<Making::Fp8> : Given {
  using Given::Given;

  static constexpr std::uint32_t kValues = 16;
  static constexpr std::uint32_t kSharers = weft::moe::kScaleBlock / kValues;

  __device__ void begin(std::uint32_t token, std::uint32_t units) {
    go_to(token);
    if (type != WEFT_MOE_F32 && Group::thread() < units) {
      first_.load(row, Group::thread());
    }
  }

  template <typename Store>
  __device__ void for_units(std::uint32_t units, Store&& store) const {
    if (type == WEFT_MOE_F32) {
      make<true>(units, store);
    } else {
      make<false>(units, store);
    }
  }

 private:
  // The next unit is on its way while one is made. All threads of a warp make the same turns,
  // because neighbours compare.
  template <bool kIsWide, typename Store>
  __device__ void make(std::uint32_t units, Store&& store) const {
    Sixteen<kIsWide> next{};
    if constexpr (kIsWide) {
      if (Group::thread() < units) {
        next.load(row, Group::thread());
      }
    } else {
      next = first_;
    }
#pragma unroll 1
    for (std::uint32_t unit = Group::thread(); unit / kWarp * kWarp < units;
         unit += Group::size()) {
      float values[kValues];
      next.widen(type, values);  // beyond the row's end zeros, or what another unit had
      if (unit + Group::size() < units) {
        next.load(row, unit + Group::size());
      }
      make_unit(unit, unit < units, values, store);
    }
  }

  template <typename Store>
  __device__ void make_unit(std::uint32_t unit,
                            bool is_there,
                            const float (&values)[kValues],
                            Store&& store) const {
    namespace wm = weft::moe;
    const bool is_e4m3 = exchange.payload == WEFT_MOE_E4M3;
    float most = is_there ? wm::largest_of(values, kValues) : 0.0F;
#pragma unroll
    for (int distance = 1; distance < static_cast<int>(kSharers); distance *= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
    }
    const float scale =
        scale_of(most, wm::reach_of(is_e4m3 ? wm::e4m3_format() : wm::e5m2_format()));
    const float inverse = wm::divide(1.0F, scale);
    float scaled[kValues];
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      scaled[i] = wm::multiply(values[i], inverse);
    }
    if (is_there) {
      store(unit, fp8_codes(is_e4m3, scaled));
      if (unit % kSharers == 0) {
        keep_scale(unit / kSharers, scale);
      }
    }
  }

  __device__ float scale_of(float most, float reach) const {
    if (exchange.scales == WEFT_MOE_SCALES_NONE) {
      return 1.0F;
    }
    const float scale = weft::moe::scale_for(most, reach);
    return exchange.scales == WEFT_MOE_SCALES_F32
               ? scale
               : weft::moe::from_ue8m0(weft::moe::ue8m0_of(scale));
  }

  Sixteen<false> first_{};

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

  __device__ void begin(std::uint32_t token, std::uint32_t /*units*/) { go_to(token); }

  template <typename Store>
  __device__ void for_units(std::uint32_t units, Store&& store) const {
    if (type == WEFT_MOE_F32) {
      make<true>(units, store);
    } else {
      make<false>(units, store);
    }
  }

 private:
  template <bool kIsWide, typename Store>
  __device__ void make(std::uint32_t units, Store&& store) const {
    namespace wm = weft::moe;
    const float row_scale =
        wm::scale_for(largest_of_row<kIsWide>(2 * units), wm::multiply(6.0F, 448.0F));
    for (std::uint32_t unit = Group::thread(); unit < units; unit += Group::size()) {
      alignas(16) std::uint8_t pairs[kUnit];
      for (std::uint32_t block = 0; block < 2; ++block) {
        Sixteen<kIsWide> given;
        given.load(row, 2 * unit + block);
        float values[wm::kNvfp4Block];
        given.widen(type, values);
        tail[2 * unit + block] = static_cast<std::byte>(
            wm::quantize_nvfp4(values, row_scale, &pairs[block * wm::kNvfp4Block / 2]));
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

  template <bool kIsWide>
  __device__ float largest_of_row(std::uint32_t blocks) const {
    float most = 0;
    for (std::uint32_t block = Group::thread(); block < blocks; block += Group::size()) {
      Sixteen<kIsWide> given;
      given.load(row, block);
      float values[16];
      given.widen(type, values);
      most = fmaxf(most, weft::moe::largest_of(values, 16));
    }
    for (int distance = 1; distance < static_cast<int>(kWarp); distance *= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
    }
    if (lane() == 0) {
      largest[Group::warp()] = most;
    }
    Group::sync<Rows::BlockPerRow>();
    for (std::uint32_t warp = 0; warp < Group::warps(); ++warp) {
      most = fmaxf(most, largest[warp]);
    }
    return most;
  }
};

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
