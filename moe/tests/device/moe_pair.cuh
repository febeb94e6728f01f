// What the tests of weft::moe on GPUs share: random tokens, an exchange in each memory, and
// comparisons of what both give.
//
// Host code; one PE's main thread.
#pragma once

#include <weft/device.h>
#include <weft/moe.h>
#include <weft/moe/layouts.hpp>
#include <weft/moe/number.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/device/device_tools.cuh"
#include "tests/device/random.hpp"

namespace suite::moe {

// One exchange and what goes through it.
struct Sizes {
  int max_tokens;
  int hidden;
  int experts;
  int topk;
  weft_moe_type payload;
  weft_moe_scales scales;
  weft_moe_type source;  // of the tokens
  weft_moe_type output;
  weft_moe_layout layout;
  int alignment;
  double none;  // share of ids that are -1
  bool all_to_one;
  int blocks = 0;              // of the kernels
  bool some_have_few = false;  // every other PE has at most 5 tokens, in turns
  bool some_nothing = false;   // put_nothing among tokens and experts' rows
  bool scales_by_column = false;
};

inline std::size_t bytes_of(weft_moe_type type, std::size_t values) {
  switch (type) {
    case WEFT_MOE_BF16:
    case WEFT_MOE_F16:
      return 2 * values;
    case WEFT_MOE_F32:
      return 4 * values;
    case WEFT_MOE_F64:
      return 8 * values;
    case WEFT_MOE_NVFP4:
      return values / 2;
    default:
      return values;
  }
}

inline bool is_by_rank(weft_moe_layout layout) {
  return weft::moe::is_by_rank(layout);
}

inline weft_moe_config config_of(const Sizes& sizes, weft_moe_memory memory) {
  weft_moe_config config{};
  config.team = WEFT_TEAM_WORLD;
  config.max_tokens = sizes.max_tokens;
  config.hidden = sizes.hidden;
  config.experts = sizes.experts;
  config.topk = sizes.topk;
  config.payload = sizes.payload;
  config.scales = sizes.scales;
  config.output = sizes.output;
  config.layout = sizes.layout;
  config.alignment = sizes.alignment;
  config.timeout_s = 60;
  config.memory = memory;
  config.blocks = sizes.blocks;
  config.scales_by_column = sizes.scales_by_column ? 1 : 0;
  config.outputs_in_place = memory == WEFT_MOE_DEVICE && is_by_rank(sizes.layout) ? 1 : 0;
  return config;
}

// A number of `type` from -4 to 4, as bytes.
inline void put_number(weft_moe_type type, float value, std::byte* to) {
  switch (type) {
    case WEFT_MOE_BF16: {
      const std::uint16_t code = weft::moe::bfloat16_of(value);
      std::memcpy(to, &code, sizeof code);
      return;
    }
    case WEFT_MOE_F16: {
      const auto code =
          static_cast<std::uint16_t>(weft::moe::encode(weft::moe::half_format(), value));
      std::memcpy(to, &code, sizeof code);
      return;
    }
    case WEFT_MOE_F32:
      std::memcpy(to, &value, sizeof value);
      return;
    case WEFT_MOE_F64: {
      const double wide = value;
      std::memcpy(to, &wide, sizeof wide);
      return;
    }
    default:
      *to = static_cast<std::byte>(static_cast<int>(value * 31));
  }
}

inline std::vector<std::byte> random_rows(weft_moe_type type,
                                          std::size_t rows,
                                          std::size_t hidden,
                                          std::uint64_t stream) {
  std::vector<std::byte> all(bytes_of(type, rows * hidden));
  const std::size_t step = type == WEFT_MOE_NVFP4 ? 1 : bytes_of(type, 1);
  std::uint64_t state = suite::random_at(suite::seed(), stream, 0);
  for (std::size_t i = 0; i < all.size() / step; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t draw = state >> 33U;
    put_number(type, (static_cast<float>(draw % 8001) - 4000) / 1000, all.data() + i * step);
  }
  return all;
}

struct Tokens {
  int count = 0;
  std::vector<std::byte> x;
  std::vector<std::byte> scales;
  std::vector<std::int64_t> ids;
  std::vector<float> weights;
};

// Among `rows`, 16 bytes of every fifth 64 become what stands where nothing has come yet
// (kEmptySlot of moe/src/gpu/layout.hpp).
inline void put_nothing(std::vector<std::byte>& rows) {
  constexpr std::uint32_t kEmptySlot = 0xFFA5C3F1;
  for (std::size_t at = 0; at + 16 <= rows.size(); at += 5 * 64) {
    for (std::size_t word = 0; word < 4; ++word) {
      std::memcpy(rows.data() + at + word * sizeof kEmptySlot, &kEmptySlot, sizeof kEmptySlot);
    }
  }
}

inline Tokens make_tokens(const Sizes& sizes, std::size_t scale_bytes, std::uint64_t round) {
  const std::uint64_t stream = (round * 64 + static_cast<std::uint64_t>(suite::me())) * 8;
  Tokens tokens;
  const auto most = static_cast<std::uint64_t>(sizes.max_tokens);
  const std::uint64_t draw = suite::random_at(suite::seed(), stream, 0);
  tokens.count = static_cast<int>(round % 3 == 0 ? most : draw % (most + 1));
  if (sizes.some_have_few && (static_cast<std::uint64_t>(suite::me()) + round) % 2 == 1) {
    tokens.count = static_cast<int>(draw % 6);
  }
  const auto count = static_cast<std::size_t>(tokens.count);
  tokens.x = random_rows(sizes.source, count, static_cast<std::size_t>(sizes.hidden), stream + 1);
  if (sizes.some_nothing) {
    put_nothing(tokens.x);
  }
  if (sizes.source == sizes.payload) {
    tokens.scales.resize(count * scale_bytes);
    for (std::size_t i = 0; i < tokens.scales.size(); ++i) {
      tokens.scales[i] = static_cast<std::byte>(suite::random_at(suite::seed(), stream + 2, i));
    }
  }
  tokens.ids.resize(count * static_cast<std::size_t>(sizes.topk));
  tokens.weights.resize(tokens.ids.size());
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    const std::uint64_t id = suite::random_at(suite::seed(), stream + 3, i);
    const bool is_none =
        static_cast<double>(suite::random_at(suite::seed(), stream + 4, i) % 1000) / 1000 <
        sizes.none;
    tokens.ids[i] =
        is_none ? -1 : static_cast<std::int64_t>(id % static_cast<std::uint64_t>(sizes.experts));
    tokens.ids[i] = sizes.all_to_one && !is_none ? 0 : tokens.ids[i];
    tokens.weights[i] =
        static_cast<float>(suite::random_at(suite::seed(), stream + 5, i) % 1000) / 500 - 1;
  }
  return tokens;
}

// Host memory and its copy on the GPU.
template <typename T>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<T>& values) : array_(values.size() + 16, Where::Own) {
    if (!values.empty()) {
      array_.write(values);
    }
  }

  [[nodiscard]] T* get() const { return array_.get(); }

 private:
  Array<T> array_;
};

// Whether a row for each node is another thing than one for each rank.
inline bool has_mates_and_others() {
  return weft_node_count() > 1 && weft_node_count() < suite::pe_count();
}

// One exchange in each memory.
class Pair {
 public:
  explicit Pair(const Sizes& sizes,
                weft_moe_on_timeout on_timeout = WEFT_MOE_ERROR,
                weft_moe_row_per row_per = WEFT_MOE_ROW_PER_RANK,
                double timeout_s = 60)
      : sizes_(sizes) {
    weft_moe_config host = config_of(sizes, WEFT_MOE_HOST);
    weft_moe_config device = config_of(sizes, WEFT_MOE_DEVICE);
    device.on_timeout = on_timeout;
    device.timeout_s = timeout_s;
    host.row_per = device.row_per = row_per;  // whose sums have other bits
    suite::require_weft(weft_moe_create(&host, &host_), "weft_moe_create in CPU memory");
    suite::require_weft(weft_moe_create(&device, &device_), "weft_moe_create in GPU memory");
    suite::require_weft(weft_moe_get_shape(device_, &shape_), "weft_moe_get_shape");
  }

  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  ~Pair() {
    weft_moe_destroy(host_);
    weft_moe_destroy(device_);
  }

  [[nodiscard]] const Sizes& sizes() const { return sizes_; }

  [[nodiscard]] const weft_moe_shape& shape() const { return shape_; }

  [[nodiscard]] weft_moe_t host() const { return host_; }

  [[nodiscard]] weft_moe_t device() const { return device_; }

  [[nodiscard]] bool is_by_rank() const { return suite::moe::is_by_rank(sizes_.layout); }

  [[nodiscard]] std::size_t parts() const {
    return static_cast<std::size_t>(is_by_rank() ? shape_.ranks : shape_.local_experts);
  }

 private:
  Sizes sizes_;
  weft_moe_t host_ = nullptr;
  weft_moe_t device_ = nullptr;
  weft_moe_shape shape_{};
};

// What a dispatch received, in host memory and packed.
struct Received {
  std::vector<std::byte> x, scales;
  std::vector<std::int32_t> ids, counts;
  std::vector<float> weights;
  std::vector<std::int64_t> offsets;

  explicit Received(const Pair& pair)
      : x(pair.shape().rows_max * pair.shape().payload_bytes),
        scales(pair.shape().rows_max * pair.shape().scale_bytes),
        ids(pair.is_by_rank() ? pair.shape().rows_max * lanes(pair) : 0),
        counts(pair.parts()),
        weights(pair.shape().rows_max * lanes(pair)),
        offsets(pair.parts() + 1) {}

  static std::size_t lanes(const Pair& pair) {
    return pair.is_by_rank() ? static_cast<std::size_t>(pair.sizes().topk) : 1;
  }
};

// rank_major shows rows in place: packs them.
inline void pack(const Pair& pair, const weft_moe_rows& rows, cudaMemcpyKind kind, Received& to) {
  const std::size_t count = pair.shape().rows_max;
  const std::size_t lane_bytes = Received::lanes(pair) * 4;
  const auto copy = [&](void* dest, std::size_t width, const void* from, std::size_t stride) {
    if (width != 0) {
      suite::require_cuda(cudaMemcpy2D(dest, width, from, stride, width, count, kind),
                          "cudaMemcpy2D of rows");
    }
  };
  copy(to.x.data(), pair.shape().payload_bytes, rows.x, rows.x_stride);
  if (pair.sizes().scales_by_column) {
    suite::require_cuda(cudaMemcpy(to.scales.data(), rows.scales, to.scales.size(), kind),
                        "cudaMemcpy of scales");
  } else {
    copy(to.scales.data(), pair.shape().scale_bytes, rows.scales, rows.scales_stride);
  }
  copy(to.weights.data(), lane_bytes, rows.weights, rows.weights_stride);
  if (pair.is_by_rank()) {
    copy(to.ids.data(), lane_bytes, rows.ids, rows.ids_stride);
  }
}

inline weft_moe_plan_t dispatch_on_cpu(const Pair& pair, const Tokens& tokens, Received& to) {
  const weft_moe_tokens given{
      tokens.count,        tokens.x.data(),
      pair.sizes().source, tokens.scales.empty() ? nullptr : tokens.scales.data(),
      tokens.ids.data(),   tokens.weights.data()};
  weft_moe_rows rows{
      to.x.data(),      to.scales.data(),  to.ids.data(), to.weights.data(), 0, 0, 0, 0,
      to.counts.data(), to.offsets.data(), nullptr};
  weft_moe_plan_t plan = nullptr;
  suite::require_weft(weft_moe_dispatch_send(pair.host(), &given), "weft_moe_dispatch_send");
  suite::require_weft(weft_moe_dispatch_recv(pair.host(), &rows, &plan), "weft_moe_dispatch_recv");
  if (pair.sizes().layout == WEFT_MOE_RANK_MAJOR) {
    pack(pair, rows, cudaMemcpyHostToHost, to);
  }
  return plan;
}

// The GPU's side of one dispatch: its arrays live as long.
class GpuDispatch {
 public:
  GpuDispatch(const Pair& pair, const Tokens& tokens)
      : pair_(pair),
        x_(tokens.x),
        scales_(tokens.scales),
        ids_(tokens.ids),
        weights_(tokens.weights),
        plan_(pair.shape().plan_bytes, Where::Own),
        rows_x_(pair.shape().rows_max * pair.shape().payload_bytes + 16, Where::Own),
        rows_scales_(pair.shape().rows_max * pair.shape().scale_bytes + 16, Where::Own),
        rows_ids_(pair.shape().rows_max * Received::lanes(pair), Where::Own),
        rows_weights_(pair.shape().rows_max * Received::lanes(pair), Where::Own),
        counts_(pair.parts(), Where::Own),
        offsets_(pair.parts() + 1, Where::Own),
        given_{tokens.count,        x_.get(),
               pair.sizes().source, tokens.scales.empty() ? nullptr : scales_.get(),
               ids_.get(),          weights_.get()},
        rows_{rows_x_.get(), rows_scales_.get(), rows_ids_.get(), rows_weights_.get(), 0, 0, 0, 0,
              counts_.get(), offsets_.get(),     nullptr} {}

  int run(weft_moe_phase phase, cudaStream_t stream = nullptr) {
    return weft_moe_dispatch_on_stream(pair_.device(), phase, &given_, &rows_, plan_.get(), stream);
  }

  void fetch(Received& to) {
    suite::require_cuda(cudaDeviceSynchronize(), "a dispatch on the GPU");
    suite::require_weft(weft_moe_check(pair_.device()), "weft_moe_check");
    pack(pair_, rows_, cudaMemcpyDeviceToHost, to);
    to.counts = counts_.read();
    to.offsets = offsets_.read();
  }

  [[nodiscard]] std::byte* plan() const { return plan_.get(); }

  [[nodiscard]] const weft_moe_rows& rows() const { return rows_; }

  [[nodiscard]] weft_moe_tokens& given() { return given_; }

  [[nodiscard]] std::int64_t* ids() const { return ids_.get(); }

  [[nodiscard]] std::byte* x() const { return x_.get(); }

  [[nodiscard]] float* weights() const { return weights_.get(); }

 private:
  const Pair& pair_;
  OnGpu<std::byte> x_;
  OnGpu<std::byte> scales_;
  OnGpu<std::int64_t> ids_;
  OnGpu<float> weights_;
  Array<std::byte> plan_;
  Array<std::byte> rows_x_;
  Array<std::byte> rows_scales_;
  Array<std::int32_t> rows_ids_;
  Array<float> rows_weights_;
  Array<std::int32_t> counts_;
  Array<std::int64_t> offsets_;
  weft_moe_tokens given_;
  weft_moe_rows rows_;
};

inline bool same_bytes(const void* a, const void* b, std::size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

// Of a row, packed.
inline std::vector<std::byte> scales_of(const Pair& pair,
                                        const Received& received,
                                        std::size_t row) {
  const std::size_t bytes = pair.shape().scale_bytes;
  std::vector<std::byte> scales(bytes);
  const std::size_t column =
      pair.shape().rows_max / static_cast<std::size_t>(pair.shape().local_experts);
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t word = (row / column * (bytes / 4) + i / 4) * column + row % column;
    scales[i] = received.scales[pair.sizes().scales_by_column ? word * 4 + i % 4 : row * bytes + i];
  }
  return scales;
}

// Rows beyond the counts are undefined, where they are no gap of a compact layout.
inline void compare(const Pair& pair,
                    const Received& expected,
                    const Received& found,
                    const char* what) {
  if (expected.counts != found.counts || expected.offsets != found.offsets) {
    suite::fail("%s: counts or offsets differ", what);
    return;
  }
  const std::size_t lanes = Received::lanes(pair);
  if (pair.sizes().layout == WEFT_MOE_RANK_MAJOR && expected.ids != found.ids) {
    suite::fail("%s: ids differ, also those of slots without a row", what);
    return;
  }
  for (std::size_t part = 0; part < pair.parts(); ++part) {
    const bool is_compact = pair.sizes().layout == WEFT_MOE_EXPERT_COMPACT;
    const auto begin = static_cast<std::size_t>(expected.offsets[part]);
    const auto end = is_compact ? static_cast<std::size_t>(expected.offsets[part + 1])
                                : begin + static_cast<std::size_t>(expected.counts[part]);
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t x = pair.shape().payload_bytes;
      const char* field =
          !same_bytes(&expected.x[row * x], &found.x[row * x], x)         ? "x"
          : scales_of(pair, expected, row) != scales_of(pair, found, row) ? "scales"
          : !same_bytes(&expected.weights[row * lanes], &found.weights[row * lanes], lanes * 4)
              ? "weights"
          : pair.is_by_rank() &&
                  !same_bytes(&expected.ids[row * lanes], &found.ids[row * lanes], lanes * 4)
              ? "ids"
              : nullptr;
      if (field != nullptr) {
        suite::fail("%s: %s of row %zu (part %zu, from %zu) differ", what, field, row, part, begin);
        return;
      }
    }
  }
}

// Where the rows came from.
inline void compare_sources(const Pair& pair,
                            weft_moe_plan_t plan,
                            GpuDispatch& gpu,
                            const char* what) {
  const std::size_t rows = pair.shape().rows_max;
  std::vector<std::int32_t> ranks(rows);
  std::vector<std::int32_t> tokens(rows);
  suite::require_weft(weft_moe_sources(pair.host(), plan, ranks.data(), tokens.data()),
                      "weft_moe_sources");
  Array<std::int32_t> gpu_ranks(rows, Where::Own);
  Array<std::int32_t> gpu_tokens(rows, Where::Own);
  suite::require_weft(weft_moe_sources_on_stream(pair.device(), gpu.plan(), gpu_ranks.get(),
                                                 gpu_tokens.get(), nullptr),
                      "weft_moe_sources_on_stream");
  suite::require_cuda(cudaDeviceSynchronize(), "weft_moe_sources_on_stream");
  if (gpu_ranks.read() != ranks || gpu_tokens.read() != tokens) {
    suite::fail("%s: the sources differ", what);
  }
}

struct Mode {
  weft_moe_precision precision;
  weft_moe_weighting weighting;
  bool splits = false;  // a send, then a receive
};

// A dispatch on both sides, which bring the same. The plan of the CPU's is freed by the caller.
inline weft_moe_plan_t compare_dispatch(const Pair& pair,
                                        const Tokens& tokens,
                                        GpuDispatch& gpu,
                                        const std::string& what) {
  Received expected(pair);
  Received found(pair);
  const weft_moe_plan_t plan = dispatch_on_cpu(pair, tokens, expected);
  suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
  gpu.fetch(found);
  compare(pair, expected, found, what.c_str());
  return plan;
}

// Of bfloat16s: which NaN a sum is differs between the GPU and the CPU.
inline void make_nans_one(std::vector<std::byte>& rows) {
  for (std::size_t at = 0; at + 2 <= rows.size(); at += 2) {
    std::uint16_t code = 0;
    std::memcpy(&code, rows.data() + at, sizeof code);
    code = (code & 0x7FFFU) > 0x7F80U ? 0x7FFF : code;
    std::memcpy(rows.data() + at, &code, sizeof code);
  }
}

// A combine on the GPU, of rows at `outputs.rows`.
inline void expect_sums(const Pair& pair,
                        const weft_moe_outputs& outputs,
                        GpuDispatch& gpu,
                        bool splits,
                        std::vector<std::byte> expected,
                        const std::string& what) {
  Array<std::byte> out(expected.size() + 16, Where::Own);
  out.fill(suite::kPoison);
  const auto combine = [&](weft_moe_phase phase) {
    suite::require_weft(
        weft_moe_combine_on_stream(pair.device(), phase, gpu.plan(), &outputs, out.get(), nullptr),
        "weft_moe_combine_on_stream");
  };
  combine(splits ? WEFT_MOE_SEND : WEFT_MOE_BOTH);
  if (splits) {
    combine(WEFT_MOE_RECEIVE);
  }
  suite::require_cuda(cudaDeviceSynchronize(), "a combine on the GPU");
  suite::require_weft(weft_moe_check(pair.device()), "weft_moe_check");
  std::vector<std::byte> found = out.read();
  if (pair.sizes().some_nothing && outputs.precision != WEFT_MOE_LANES) {
    make_nans_one(expected);
    make_nans_one(found);
  }
  const auto differs = std::mismatch(expected.begin(), expected.end(), found.begin());
  if (differs.first != expected.end()) {
    suite::fail("%s: combine, precision %d, weighting %d: byte %zu of %zu differs", what.c_str(),
                outputs.precision, outputs.weighting,
                static_cast<std::size_t>(differs.first - expected.begin()), expected.size());
  }
}

// The rows of the experts: any, but the same on both sides. Rows by rank are sent, and also read in
// place.
inline void compare_combine(const Pair& pair,
                            const Tokens& tokens,
                            weft_moe_plan_t plan,
                            GpuDispatch& gpu,
                            const Mode& mode,
                            const std::string& what) {
  const Sizes& sizes = pair.sizes();
  const auto hidden = static_cast<std::size_t>(sizes.hidden);
  std::vector<std::byte> rows = random_rows(sizes.output, pair.shape().rows_max, hidden,
                                            900 + static_cast<std::uint64_t>(suite::me()));
  if (sizes.some_nothing) {
    put_nothing(rows);
  }
  const std::size_t lanes =
      mode.precision == WEFT_MOE_LANES ? static_cast<std::size_t>(sizes.topk) : 1;
  const std::size_t bytes =
      bytes_of(sizes.output, static_cast<std::size_t>(tokens.count) * lanes * hidden);
  std::vector<std::byte> expected(bytes);
  weft_moe_outputs outputs{rows.data(), 0, mode.precision, mode.weighting, tokens.weights.data()};
  suite::require_weft(weft_moe_combine_send(pair.host(), plan, &outputs), "weft_moe_combine_send");
  suite::require_weft(weft_moe_combine_recv(pair.host(), expected.data()), "weft_moe_combine_recv");

  const OnGpu<std::byte> gpu_rows(rows);
  outputs.rows = gpu_rows.get();
  outputs.topk_weights = gpu.weights();
  expect_sums(pair, outputs, gpu, mode.splits || mode.precision == WEFT_MOE_EXACT, expected, what);
  if (gpu.rows().outputs != nullptr && mode.precision == WEFT_MOE_REDUCED) {
    suite::require_cuda(
        cudaMemcpy(gpu.rows().outputs, gpu_rows.get(), rows.size(), cudaMemcpyDeviceToDevice),
        "the experts' rows in place");
    outputs.rows = gpu.rows().outputs;
    expect_sums(pair, outputs, gpu, mode.splits, expected, what + ", in place");
  }
}

inline int experts_for(int wanted) {
  return std::max(wanted, suite::pe_count());
}

// Rows of bfloat16s both ways. `none`: the share of ids that are -1.
inline Sizes bfloat16_rows(
    int max_tokens, int hidden, int experts, int topk, weft_moe_layout layout, double none = 0) {
  return {max_tokens,
          hidden,
          experts_for(experts),
          topk,
          WEFT_MOE_BF16,
          WEFT_MOE_SCALES_NONE,
          WEFT_MOE_BF16,
          WEFT_MOE_BF16,
          layout,
          1,
          none,
          false};
}

// For cases that are about calls, not about rows.
inline Sizes few_tokens() {
  return bfloat16_rows(8, 64, 4, 2, WEFT_MOE_EXPERT_PADDED);
}

}  // namespace suite::moe
