// Numbers of 16 bytes in registers and sums of rows: term by term from memory, by the copy engine,
// and as fp8. 660 lines, as all three add the same terms in the same order.
//
// Device code, by the threads of a group. In the order of weft/moe.h (weft_moe_precision), so bits
// are those of CPUs.
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/quantize.hpp>
#include <weft/moe/row.hpp>

#include <cuda_fp16.h>

#include <type_traits>

#include "moe/src/gpu/kernels/call.cuh"
#include "moe/src/gpu/kernels/copy_engine.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Numbers and their sums
//
// The types of combine's rows, a unit of 16 bytes at a time: loads to floats (doubles), and rounds
// back, as moe/src/plan/element.hpp does.
//
// Device code: any thread; a UnitSum belongs to one.

struct DeviceBf16 {
  using Stored = std::uint16_t;
  using Sum = float;

  static __device__ Sum load(Stored value) { return weft::moe::from_bfloat16(value); }

  static __device__ Stored store(Sum value) { return weft::moe::bfloat16_of(value); }
};

struct DeviceF16 {
  using Stored = std::uint16_t;
  using Sum = float;

  static __device__ Sum load(Stored value) { return __half2float(__ushort_as_half(value)); }

  static __device__ Stored store(Sum value) { return __half_as_ushort(__float2half_rn(value)); }
};

template <typename T>
struct DevicePlain {
  using Stored = T;
  using Sum = T;

  static __device__ Sum load(Stored value) { return value; }

  static __device__ Stored store(Sum value) { return value; }
};

// Products and sums that are not contracted, so that they have the bits of the CPU's.
inline __device__ float multiply(float a, float b) {
  return __fmul_rn(a, b);
}

inline __device__ double multiply(double a, double b) {
  return __dmul_rn(a, b);
}

inline __device__ float add(float a, float b) {
  return __fadd_rn(a, b);
}

inline __device__ double add(double a, double b) {
  return __dadd_rn(a, b);
}

// Whether there may be a NaN among pairs of bfloat16s: their sum is one then, and if there are
// infinities of both signs.
class SeenNan {
 public:
  __device__ void look_at(std::uint32_t pair) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("add.rn.bf16x2 %0, %0, %1;" : "+r"(sum_) : "r"(pair));
#else
    sum_ = is_nan(pair) || is_nan(pair << 16U) ? pair : sum_;
#endif
  }

  [[nodiscard]] __device__ bool maybe() const { return is_nan(sum_) || is_nan(sum_ << 16U); }

 private:
  // In the upper half.
  static __device__ bool is_nan(std::uint32_t pair) { return (pair & 0x7FFF0000U) > 0x7F800000U; }

  std::uint32_t sum_ = 0;
};

// The sum of one unit of several rows.
template <typename Type>
struct UnitSum {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;

  static constexpr std::uint32_t kValues = kUnit / sizeof(Stored);

  Sum sums[kValues] = {};

  __device__ void add_unit(const Vector16& unit, bool is_weighted, float weight) {
    if constexpr (std::is_same_v<Type, DeviceBf16>) {
      add_words({unit.x, unit.y, unit.z, unit.w}, is_weighted, weight);
      return;
    }
    Stored values[kValues];
    memcpy(values, &unit, sizeof unit);
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const Sum value = Type::load(values[i]);
      sums[i] = add(sums[i], is_weighted ? multiply(static_cast<Sum>(weight), value) : value);
    }
  }

  // Sums that were not rounded travel as they are in registers, in so many units.
  static constexpr std::uint32_t kUnitsOfSums = kValues * sizeof(Sum) / kUnit;

  __device__ void add_sums(const Vector16* from) {
    Sum values[kValues];
#pragma unroll
    for (std::uint32_t i = 0; i < kUnitsOfSums; ++i) {
      const Vector16 unit = device::load_shared(from + i);
      memcpy(&values[i * kValues / kUnitsOfSums], &unit, sizeof unit);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      sums[i] = add(sums[i], values[i]);
    }
  }

  __device__ void store_sums(Vector16* to) const {
#pragma unroll
    for (std::uint32_t i = 0; i < kUnitsOfSums; ++i) {
      Vector16 unit;
      memcpy(&unit, &sums[i * kValues / kUnitsOfSums], sizeof unit);
      device::store_data(to + i, unit);
    }
  }

  // Bfloat16, two at once by the GPU's instruction, whose NaN is another than ours: `seen` hears of
  // it.
  __device__ Vector16 rounded_numbers(SeenNan& seen) const {
    static_assert(std::is_same_v<Type, DeviceBf16>);
    std::uint32_t words[4];
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
          : "=r"(words[i])
          : "f"(sums[2 * i + 1]), "f"(sums[2 * i]));
      seen.look_at(words[i]);
    }
    return {words[0], words[1], words[2], words[3]};
  }

  __device__ Vector16 rounded() const {
    if constexpr (std::is_same_v<Type, DeviceBf16>) {
      SeenNan seen;
      const Vector16 numbers = rounded_numbers(seen);
      if (!seen.maybe()) {
        return numbers;
      }
    }
    Stored values[kValues];
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      values[i] = Type::store(sums[i]);
    }
    Vector16 unit;
    memcpy(&unit, values, sizeof unit);
    return unit;
  }

 private:
  // Bfloat16s are the upper halves of floats.
  __device__ void add_words(const std::uint32_t (&words)[4], bool is_weighted, float weight) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const float low = __uint_as_float(words[i] << 16U);
      const float high = __uint_as_float(words[i] & 0xFFFF0000U);
      sums[2 * i] = add(sums[2 * i], is_weighted ? multiply(weight, low) : low);
      sums[2 * i + 1] = add(sums[2 * i + 1], is_weighted ? multiply(weight, high) : high);
    }
  }
};

// ---- Sums
//
// Sums of rows, by a group: in the order of the terms, with as many loads on their way as registers
// hold. Products and sums are not contracted, so they have the bits of the CPU's (formats.cuh).
//
// Device code: all threads of a group together. Terms lie in shared memory, behind the group's
// barrier.

// Rows that a group adds up or copies.
struct Terms {
  const std::byte* from[kTopkMax];
  float weights[kTopkMax];
  std::uint32_t count;
};

// The group's terms from `first` on, at most kTerms: in registers.
template <std::uint32_t kTerms>
struct SomeTerms {
  const Vector16* from[kTerms];
  float weights[kTerms];
  std::uint32_t first;
  std::uint32_t count;

  __device__ SomeTerms(const Terms& terms, std::uint32_t its_first)
      : first(its_first), count(terms.count - its_first) {
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      from[i] = nullptr;
      weights[i] = 0;
      if (i < count) {
        from[i] = reinterpret_cast<const Vector16*>(terms.from[first + i]);
        weights[i] = terms.weights[first + i];
      }
    }
  }
};

// How a sum loads its terms and stores what it makes: from and to memory that is read behind a
// barrier.
struct Plainly {
  static __device__ Vector16 load(const Vector16* from) { return device::load_shared(from); }

  // Behind the loads of `terms`, those of a group from `first` on: loaded[u][i] is unit + u * the
  // group's size of term i.
  template <Rows kRows, std::uint32_t kUnitsAtOnce, std::uint32_t kTerms>
  static __device__ void settle(const SomeTerms<kTerms>& /*terms*/,
                                std::uint32_t /*unit*/,
                                std::uint32_t /*units*/,
                                Vector16 (& /*loaded*/)[kUnitsAtOnce][kTerms]) {}

  static __device__ void store(Vector16* to, const Vector16& data) { device::store_data(to, data); }
};

// Adds up to kTerms terms to the sums of kUnitsAtOnce units, a group's threads apart, with all
// loads on their way together.
template <typename Type,
          Rows kRows,
          std::uint32_t kUnitsAtOnce,
          std::uint32_t kTerms,
          typename Moves>
__device__ void add_terms(const SomeTerms<kTerms>& terms,
                          std::uint32_t unit,
                          std::uint32_t units,
                          bool weighs,
                          UnitSum<Type> (&sums)[kUnitsAtOnce],
                          Moves& moves) {
  Vector16 loaded[kUnitsAtOnce][kTerms];
#pragma unroll
  for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      if (i < terms.count && unit + u * Group::size<kRows>() < units) {
        loaded[u][i] = moves.load(terms.from[i] + unit + u * Group::size<kRows>());
      }
    }
  }
  moves.template settle<kRows>(terms, unit, units, loaded);
#pragma unroll
  for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      if (i < terms.count && unit + u * Group::size<kRows>() < units) {
        sums[u].add_unit(loaded[u][i], weighs, terms.weights[i]);
      }
    }
  }
}

// The group's terms, added in their order, to `to`: a thread has kUnitsAtOnce units at once, or one
// if they are not `together`, and kTerms terms of each. (The code is the same for 1 unit and for
// several: written for one alone, the kernels for few rows spilled 24 bytes.)
template <typename Type,
          Rows kRows,
          std::uint32_t kUnitsAtOnce,
          std::uint32_t kTerms,
          typename Moves = Plainly>
__device__ void store_sum_by(const Terms& all,
                             std::uint32_t units,
                             std::byte* to,
                             bool weighs,
                             Moves&& moves = {},
                             bool together = true) {
  const SomeTerms<kTerms> terms(all, 0);
  const std::uint32_t step = (together ? kUnitsAtOnce : 1) * Group::size<kRows>();
#pragma unroll 1
  for (std::uint32_t unit = Group::thread(); unit < units; unit += step) {
    const std::uint32_t end = together ? units : min(units, unit + 1);
    UnitSum<Type> sums[kUnitsAtOnce];
    add_terms<Type, kRows>(terms, unit, end, weighs, sums, moves);
#pragma unroll 1
    for (std::uint32_t first = kTerms; first < all.count; first += kTerms) {
      add_terms<Type, kRows>(SomeTerms<kTerms>(all, first), unit, end, weighs, sums, moves);
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
      if (unit + u * Group::size<kRows>() < end) {
        moves.store(reinterpret_cast<Vector16*>(to) + unit + u * Group::size<kRows>(),
                    sums[u].rounded());
      }
    }
  }
}

// At most two terms, several units at once. No sum is kept across units, which saves registers.
template <typename Type, typename Moves>
__device__ void store_sum_of_two(
    const Terms& all, std::uint32_t units, std::byte* to, bool weighs, Moves& moves) {
  constexpr std::uint32_t kUnitsAtOnce = 2;
  const SomeTerms<2> terms(all, 0);
#pragma unroll 1
  for (std::uint32_t first = Group::thread(); first < units;
       first += kUnitsAtOnce * Group::size()) {
    Vector16 loaded[kUnitsAtOnce][2];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (i < terms.count && first + u * Group::size() < units) {
          loaded[u][i] = moves.load(terms.from[i] + first + u * Group::size());
        }
      }
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
      if (first + u * Group::size() < units) {
        UnitSum<Type> sum;
#pragma unroll
        for (std::uint32_t i = 0; i < 2; ++i) {
          if (i < terms.count) {
            sum.add_unit(loaded[u][i], weighs, terms.weights[i]);
          }
        }
        moves.store(reinterpret_cast<Vector16*>(to) + first + u * Group::size(), sum.rounded());
      }
    }
  }
}

// Where rows are few. Few terms are those of a team of few ranks: then several units at once keep
// as many loads on their way.
template <typename Type, typename Moves = Plainly>
__device__ void store_sum(
    const Terms& terms, std::uint32_t units, std::byte* to, bool weighs, Moves&& moves = {}) {
  if (terms.count <= 2) {
    store_sum_of_two<Type>(terms, units, to, weighs, moves);
  } else {
    store_sum_by<Type, Rows::BlockPerRow, 1, 8>(terms, units, to, weighs, moves);
  }
}

// Any sum, apart: what it keeps in registers costs its caller none.
template <typename Type, Rows kRows>
__device__ __noinline__ void store_other_sum(const Terms& terms,
                                             std::uint32_t units,
                                             std::byte* to,
                                             bool weighs) {
  store_sum_by<Type, kRows, 2, 4>(terms, units, to, weighs);
}

template <Rows kRows>
__device__ void copy_units(const std::byte* from, std::byte* to, std::uint32_t units) {
  for_units_loaded<kRows>(reinterpret_cast<const Vector16*>(from), units,
                          [&](std::uint32_t unit, const Vector16& loaded) {
                            device::store_data(reinterpret_cast<Vector16*>(to) + unit, loaded);
                          });
}

// ---- By the copy engine
//
// Sums of rows whose pieces come through a warp's pipeline: those of all terms at once, so that a
// warp has all of its shared memory on its way, and no register waits. The same bits as those of
// sums.cuh.
//
// Device code: all threads of a warp together.

inline constexpr std::uint32_t kBulkTermsMax = 8;  // more have pieces that are too short

// Pieces of so many terms that fit into a pipeline together, about equal.
template <typename Memory>
__device__ std::uint32_t units_of_piece(std::uint32_t terms, std::uint32_t units) {
  constexpr std::uint32_t kAligned = kBulkAlignment / kUnit;
  const std::uint32_t room =
      Memory::kSlots * Memory::kSlotBytes / kBulkAlignment / terms * kAligned;
  const std::uint32_t pieces = (units + room - 1) / room;
  return (units + pieces * kAligned - 1) / (pieces * kAligned) * kAligned;
}

// A piece in a pipeline: `units` of each of `terms`, `pitch` apart.
struct SumPiece {
  const Vector16* loaded;
  const Terms& terms;
  std::uint32_t pitch;
  std::uint32_t units;
};

// Sums of a piece of kTerms terms (0: as many as they are), two units at once.
template <bool kWeighs, std::uint32_t kTerms>
__device__ void store_sum_of_piece(const SumPiece& piece, Vector16* to, SeenNan& seen) {
  const std::uint32_t terms = kTerms != 0 ? kTerms : piece.terms.count;
  constexpr std::uint32_t kHeld = kTerms != 0 ? kTerms : 1;
  float weights[kHeld] = {};
#pragma unroll
  for (std::uint32_t i = 0; kWeighs && i < kHeld; ++i) {
    weights[i] = piece.terms.weights[i];
  }
#pragma unroll 1
  for (std::uint32_t unit = lane(); unit < piece.units; unit += 2 * kWarp) {
    const bool has_second = unit + kWarp < piece.units;
    UnitSum<DeviceBf16> first;
    UnitSum<DeviceBf16> second;
#pragma unroll
    for (std::uint32_t i = 0; i < terms; ++i) {
      const float weight = !kWeighs ? 0 : kTerms != 0 ? weights[i] : piece.terms.weights[i];
      const Vector16* term = piece.loaded + i * piece.pitch + unit;
      first.add_unit(term[0], kWeighs, weight);
      second.add_unit(has_second ? term[kWarp] : Vector16{}, kWeighs, weight);
    }
    device::store_data(to + unit, first.rounded_numbers(seen));
    if (has_second) {
      device::store_data(to + unit + kWarp, second.rounded_numbers(seen));
    }
  }
}

template <bool kWeighs>
__device__ void store_sum_of_piece(const SumPiece& piece, Vector16* to, SeenNan& seen) {
  switch (piece.terms.count) {
    case 2:
      return store_sum_of_piece<kWeighs, 2>(piece, to, seen);
    case 3:
      return store_sum_of_piece<kWeighs, 3>(piece, to, seen);
    case 4:
      return store_sum_of_piece<kWeighs, 4>(piece, to, seen);
    default:
      return store_sum_of_piece<kWeighs, 0>(piece, to, seen);
  }
}

// Behind a barrier of the warp's threads that have written `terms`, and acquired what these are,
// and fence_global_for_bulk. 1 to kBulkTermsMax terms of bfloat16s. False if some sum may be NaN,
// whose bits are left to the caller: the code for them would lie in the loop.
template <bool kWeighs, typename Memory>
__device__ bool store_sum_by_bulk(const BulkPipeline<Memory>& pipeline,
                                  const Terms& terms,
                                  std::uint32_t units,
                                  std::byte* out) {
  const std::uint32_t pitch = units_of_piece<Memory>(terms.count, units);
  const auto* loaded = reinterpret_cast<const Vector16*>(pipeline.slot(0));
  auto* to = reinterpret_cast<Vector16*>(out);
  SeenNan seen;
#pragma unroll 1
  for (std::uint32_t first = 0; first < units; first += pitch) {
    const std::uint32_t some = min(pitch, units - first);
    if (lane() == 0) {
      pipeline.load_together(terms.count, pitch * kUnit, some * kUnit, [&](std::uint32_t i) {
        return terms.from[i] + std::size_t{first} * kUnit;
      });
    }
    pipeline.await(0);
    store_sum_of_piece<kWeighs>({loaded, terms, pitch, some}, to + first, seen);
    fence_shared_for_bulk();
    __syncwarp();  // all have read the piece, and the phase
    if (lane() == 0) {
      pipeline.taken(0);
    }
    __syncwarp();
  }
  return __any_sync(kAllLanes, seen.maybe()) == 0;
}

// ---- As fp8
//
// Sums that travel as fp8 (weft/moe/row.hpp Fp8Row): made on the experts' rank, added up at the
// source. Bit for bit what moe/src/plan/element.hpp does.
//
// Device code: all threads of a group together. Terms lie in shared memory, behind the group's
// barrier. A thread has 16 values; 8 neighbours share a scale.

// weft::moe::encode for fp8, two numbers at once. Compute capability 8.9 and later have an
// instruction for it.
inline __device__ std::uint32_t fp8_pair(bool is_e4m3, float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  const weft::moe::SmallFormat format =
      is_e4m3 ? weft::moe::e4m3_format() : weft::moe::e5m2_format();
  return weft::moe::encode(format, low) | weft::moe::encode(format, high) << 8U;
#else
  std::uint16_t codes = 0;
  if (is_e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  }
  return codes;
#endif
}

// The same for four values that need not be numbers. Rare, so it is kept out of the way.
inline __device__ __noinline__ std::uint32_t fp8_of_any(
    bool is_e4m3, float first, float second, float third, float fourth) {
  const weft::moe::SmallFormat format =
      is_e4m3 ? weft::moe::e4m3_format() : weft::moe::e5m2_format();
  return weft::moe::encode(format, first) | weft::moe::encode(format, second) << 8U |
         weft::moe::encode(format, third) << 16U | weft::moe::encode(format, fourth) << 24U;
}

// 16 values to codes. What is no number has weft::moe's code, which is not the instruction's.
inline __device__ Vector16 fp8_codes(bool is_e4m3, const float (&values)[16]) {
  std::uint32_t words[4];
  bool is_number = true;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    words[i] = fp8_pair(is_e4m3, values[4 * i], values[4 * i + 1]) |
               fp8_pair(is_e4m3, values[4 * i + 2], values[4 * i + 3]) << 16U;
    is_number = is_number && !isnan(values[4 * i] + values[4 * i + 1]) &&
                !isnan(values[4 * i + 2] + values[4 * i + 3]);
  }
  if (!is_number) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      words[i] = fp8_of_any(is_e4m3, values[4 * i], values[4 * i + 1], values[4 * i + 2],
                            values[4 * i + 3]);
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

// How sums travel: rounded to the type of the output, or as Fp8Row.
enum class Travels { Rounded, Fp8 };

inline constexpr std::uint32_t kCodes = kUnit;  // of a thread
inline constexpr std::uint32_t kSharersOfScale = weft::moe::kScaleBlock / kCodes;

// 16 values of the output's type.
template <typename Type>
struct SixteenSums {
  static constexpr std::uint32_t kUnits = kCodes / UnitSum<Type>::kValues;

  UnitSum<Type> units[kUnits];

  __device__ void add_row(const std::byte* row, std::uint32_t index, bool weighs, float weight) {
    const auto* from = reinterpret_cast<const Vector16*>(row) + index * kUnits;
#pragma unroll
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      units[unit].add_unit(device::load_shared(from + unit), weighs, weight);
    }
  }

  __device__ void add_sums(const std::byte* row, std::uint32_t index) {
    constexpr std::uint32_t kUnitsOfSums = UnitSum<Type>::kUnitsOfSums;
    const auto* from = reinterpret_cast<const Vector16*>(row) + index * kUnits * kUnitsOfSums;
#pragma unroll
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      units[unit].add_sums(from + unit * kUnitsOfSums);
    }
  }

  __device__ float& operator[](std::uint32_t value) {
    return units[value / UnitSum<Type>::kValues].sums[value % UnitSum<Type>::kValues];
  }
};

// A row of sums at `to`. add(sums, i): adds the terms of values 16 i to 16 i + 15. All threads of a
// warp make the same turns, because neighbours compare.
template <typename Type, typename Add>
__device__ void store_as_fp8(std::uint32_t hidden, std::byte* to, Add&& add) {
  namespace wm = weft::moe;
  const std::uint32_t count = hidden / kCodes;
#pragma unroll 1
  for (std::uint32_t i = Group::thread(); i / kWarp * kWarp < count; i += Group::size()) {
    SixteenSums<Type> sums{};
    if (i < count) {
      add(sums, i);
    }
    float values[kCodes];
#pragma unroll
    for (std::uint32_t value = 0; value < kCodes; ++value) {
      values[value] = sums[value];
    }
    float most = wm::largest_of(values, kCodes);
#pragma unroll
    for (int distance = 1; distance < static_cast<int>(kSharersOfScale); distance *= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
    }
    const float scale = wm::scale_for(most, wm::reach_of(wm::e4m3_format()));
    const float inverse = wm::divide(1.0F, scale);
#pragma unroll
    for (std::uint32_t value = 0; value < kCodes; ++value) {
      values[value] = wm::multiply(values[value], inverse);
    }
    if (i < count) {
      device::store_data(at<Vector16>(to, 0) + i, fp8_codes(true, values));
      if (i % kSharersOfScale == 0) {
        at<float>(to, wm::Fp8Row{hidden}.scales_at())[i / kSharersOfScale] = scale;
      }
    }
  }
}

// The group's terms, added in their order, as a row at `to`.
template <typename Type>
__device__ void store_fp8_sum(const Terms& terms,
                              std::uint32_t hidden,
                              std::byte* to,
                              bool weighs) {
  store_as_fp8<Type>(hidden, to, [&](SixteenSums<Type>& sums, std::uint32_t i) {
    for (std::uint32_t term = 0; term < terms.count; ++term) {
      sums.add_row(terms.from[term], i, weighs, terms.weights[term]);
    }
  });
}

// The numbers of four codes of e4m3. Compute capability 8.9 and later have an instruction for it.
inline __device__ void widen_fp8(std::uint32_t codes, float (&values)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    values[i] = weft::moe::decode(weft::moe::e4m3_format(), codes >> i * 8 & 0xffU);
  }
#else
#pragma unroll
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    std::uint32_t halves = 0;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;"
        : "=r"(halves)
        : "h"(static_cast<std::uint16_t>(codes >> pair * 16)));
    values[2 * pair] = __half2float(__ushort_as_half(static_cast<std::uint16_t>(halves)));
    values[2 * pair + 1] =
        __half2float(__ushort_as_half(static_cast<std::uint16_t>(halves >> 16U)));
  }
#endif
}

// The rows of the group's terms, added in their order, at `to`.
template <typename Type>
__device__ void store_sum_of_fp8(const Terms& terms, std::uint32_t hidden, std::byte* to) {
  const std::uint32_t count = hidden / kCodes;
  const std::size_t scales_at = weft::moe::Fp8Row{hidden}.scales_at();
#pragma unroll 1
  for (std::uint32_t i = Group::thread(); i < count; i += Group::size()) {
    SixteenSums<Type> sums{};
    for (std::uint32_t term = 0; term < terms.count; ++term) {
      const std::byte* row = terms.from[term];
      const Vector16 codes = device::load_shared(reinterpret_cast<const Vector16*>(row) + i);
      const auto* scales = reinterpret_cast<const std::uint32_t*>(row + scales_at);
      const float scale = __uint_as_float(device::load_relaxed(scales + i / kSharersOfScale));
      std::uint32_t words[4];
      memcpy(words, &codes, sizeof codes);
#pragma unroll
      for (std::uint32_t word = 0; word < 4; ++word) {
        float values[4];
        widen_fp8(words[word], values);
#pragma unroll
        for (std::uint32_t value = 0; value < 4; ++value) {
          float& sum = sums[4 * word + value];
          sum = add(sum, multiply(values[value], scale));
        }
      }
    }
    auto* units = reinterpret_cast<Vector16*>(to) + i * SixteenSums<Type>::kUnits;
#pragma unroll
    for (std::uint32_t unit = 0; unit < SixteenSums<Type>::kUnits; ++unit) {
      device::store_data(units + unit, sums.units[unit].rounded());
    }
  }
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
