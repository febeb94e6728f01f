// The arithmetic of weft::moe gives the same bits on the GPU as on the host: formats, quantisation,
// slots, rows.
#include <weft/moe/plan.hpp>
#include <weft/moe/quantize.hpp>
#include <weft/moe/row.hpp>

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/device/device_suite.hpp"
#include "tests/device/random.hpp"

namespace {

namespace moe = weft::moe;

// What each index is worth on one side; every function of the headers has a part in it.
struct Answer {
  std::uint32_t codes[4];
  std::uint32_t decoded[4];
  std::uint8_t fp8[128];
  std::uint8_t fp8_of_power[128];
  std::uint8_t pairs[8];
  std::uint32_t scales[3];
  std::int32_t places[6];
};

constexpr std::uint32_t kAnswers = 1U << 16U;
constexpr std::int32_t kTopk = 8;

struct Inputs {
  const float* values;        // [kAnswers + 128]
  const std::int32_t* ids;    // [kAnswers + kTopk]
  const std::uint64_t* bits;  // [4]
};

WEFT_HOST_DEVICE inline void answer(const Inputs& inputs, std::uint32_t index, Answer& to) {
  const float value = moe::from_bfloat16(static_cast<std::uint16_t>(index));
  const moe::SmallFormat formats[] = {moe::e4m3_format(), moe::e5m2_format(), moe::e2m1_format(),
                                      moe::half_format()};
  for (int i = 0; i < 4; ++i) {
    to.codes[i] = moe::encode(formats[i], value);
    to.decoded[i] = moe::bits_of(moe::decode(formats[i], to.codes[i]));
  }
  const float* row = inputs.values + index;
  to.scales[0] = moe::bits_of(moe::quantize_fp8(formats[0], row, 128, to.fp8));
  to.scales[1] = moe::quantize_fp8_ue8m0(formats[1], row, 100, to.fp8_of_power);
  to.scales[2] = moe::quantize_nvfp4(row, moe::nvfp4_row_scale(row, 64), to.pairs);
  const moe::ExpertMap map{61, 7};
  const moe::Route route{inputs.ids + index, kTopk};
  const auto rank = static_cast<std::int32_t>(index % 7);
  to.places[0] = static_cast<std::int32_t>(moe::rank_mask(route, map, 0));
  to.places[1] = moe::slot_of(inputs.bits, static_cast<std::int32_t>(index % 256));
  to.places[2] = moe::goes_to(route, map, rank) ? moe::expert_rows_at(route, map, rank) : -1;
  to.places[3] = moe::bfloat16_of(row[0]);
  to.places[4] = static_cast<std::int32_t>(
      moe::RowLayout{16U * (1 + index % 99), index % 50, index % 16 + 1}.bytes());
  to.places[5] = route.ids[0] < 0 ? -1 : map.local_of(route.ids[0]);
}

__global__ void answer_all(Inputs inputs, Answer* to) {
  const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < kAnswers) {
    answer(inputs, index, to[index]);
  }
}

template <typename T>
T* on_gpu(const std::vector<T>& values) {
  T* address = nullptr;
  cudaMalloc(&address, values.size() * sizeof(T));
  cudaMemcpy(address, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return address;
}

DEVICE_TEST(moe_arithmetic, "the arithmetic of weft::moe is bit-equal on host and GPU") {
  std::vector<float> values(kAnswers + 128);
  std::vector<std::int32_t> ids(kAnswers + kTopk);
  std::vector<std::uint64_t> bits(4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t draw = suite::random_at(suite::seed(), 1, i);
    values[i] = (static_cast<float>(draw % 20001) - 10000.0F) *
                moe::power_of_two(static_cast<int>(i / 128 % 40) - 20);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(suite::random_at(suite::seed(), 2, i) % 62) - 1;
  }
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = suite::random_at(suite::seed(), 3, i);
  }
  float* gpu_values = on_gpu(values);
  std::int32_t* gpu_ids = on_gpu(ids);
  std::uint64_t* gpu_bits = on_gpu(bits);
  std::vector<Answer> found(kAnswers);
  std::memset(found.data(), 0, found.size() * sizeof(Answer));
  Answer* gpu_found = on_gpu(found);
  answer_all<<<kAnswers / 256, 256>>>(Inputs{gpu_values, gpu_ids, gpu_bits}, gpu_found);
  cudaMemcpy(found.data(), gpu_found, found.size() * sizeof(Answer), cudaMemcpyDeviceToHost);
  for (std::uint32_t index = 0; index < kAnswers; ++index) {
    Answer expected;
    std::memset(&expected, 0, sizeof expected);
    answer(Inputs{values.data(), ids.data(), bits.data()}, index, expected);
    if (std::memcmp(&expected, &found[index], sizeof expected) != 0) {
      suite::fail("index %u differs", index);
      break;
    }
  }
  cudaFree(gpu_values);
  cudaFree(gpu_ids);
  cudaFree(gpu_bits);
  cudaFree(gpu_found);
}

}  // namespace
