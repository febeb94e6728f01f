// What dispatch and combine of weft::moe cost on GPUs: 256 experts, 8 of them for each token, rows
// of 7168 values, fp8 quantised on the way out, bf16 on the way back; new routes for each token,
// the same in every repetition. JSON lines: for each number of tokens the time of a dispatch, of a
// combine and of a pair, in microseconds, alone and in a CUDA graph of 50; the median over samples
// on each PE, then the largest and the least over PEs. Between nodes also how many bytes a PE puts
// in one, the most over PEs. `rows_busiest`: the most rows that a PE sends to others, or gets from
// them, in a dispatch.
//
// --routing zipf: the chance of an expert is that of its number in an order that all PEs share: 1,
// 1/2, 1/3, ... of the first's.
//
//   weft-run -n PES -- moe_kernels [--layout padded|compact|rank|rank-compact]
//                                  [--payload made|given] [--blocks N] [--outputs sent|in-place]
//                                  [--row-per rank|node] [--precision reduced|fp8]
//                                  [--tokens 1,8,32,128] [--samples N] [--routing uniform|zipf]
//                                  [--hidden 7168] [--experts 256] [--topk 8]
#include <weft/device.h>
#include <weft/moe.h>
#include <weft/moe/experts.hpp>
#include <weft/moe/layouts.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/multi/programs/sent_counts.hpp"

namespace {

constexpr int kChained = 50;

void require(bool is_so, const char* what) {
  if (!is_so) {
    std::fprintf(stderr, "PE %d: %s: %s, %s\n", weft_pe(), what,
                 cudaGetErrorString(cudaGetLastError()), weft_last_error());
    weft_global_exit(1);
  }
}

template <typename T>
T* on_gpu(const std::vector<T>& values) {
  T* address = nullptr;
  require(cudaMalloc(&address, values.size() * sizeof(T) + 16) == cudaSuccess, "cudaMalloc");
  require(cudaMemcpy(address, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) ==
              cudaSuccess,
          "cudaMemcpy");
  return address;
}

struct Options {
  weft_moe_layout layout = WEFT_MOE_EXPERT_PADDED;
  int blocks = 0;
  int samples = 21;
  int hidden = 7168;
  int experts = 256;
  int topk = 8;
  bool is_skewed = false;
  bool is_given = false;     // fp8 by the caller
  bool is_in_place = false;  // the experts' rows, where peers read them
  bool is_per_node = false;  // a row for each node
  bool is_fp8 = false;       // what combine sends
  std::vector<int> tokens{1, 8, 32, 128};
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--layout") {
      options.layout = value == "compact"        ? WEFT_MOE_EXPERT_COMPACT
                       : value == "rank"         ? WEFT_MOE_RANK_MAJOR
                       : value == "rank-compact" ? WEFT_MOE_RANK_COMPACT
                                                 : WEFT_MOE_EXPERT_PADDED;
    } else if (name == "--payload") {
      options.is_given = value == "given";
    } else if (name == "--outputs") {
      options.is_in_place = value == "in-place";
    } else if (name == "--row-per") {
      options.is_per_node = value == "node";
    } else if (name == "--precision") {
      options.is_fp8 = value == "fp8";
    } else if (name == "--blocks") {
      options.blocks = std::atoi(value.c_str());
    } else if (name == "--samples") {
      options.samples = std::atoi(value.c_str());
    } else if (name == "--routing") {
      options.is_skewed = value == "zipf";
    } else if (name == "--hidden") {
      options.hidden = std::atoi(value.c_str());
    } else if (name == "--experts") {
      options.experts = std::atoi(value.c_str());
    } else if (name == "--topk") {
      options.topk = std::atoi(value.c_str());
    } else if (name == "--tokens") {
      options.tokens.clear();
      for (std::size_t at = 0; at < value.size(); at = value.find(',', at) + 1) {
        options.tokens.push_back(std::atoi(value.c_str() + at));
        if (value.find(',', at) == std::string::npos) {
          break;
        }
      }
    }
  }
  return options;
}

// [tokens, topk] of this PE, no expert twice for a token.
std::vector<std::int64_t> routes_of(const Options& options, int tokens) {
  std::vector<double> chances(static_cast<std::size_t>(options.experts), 1.0);
  if (options.is_skewed) {
    std::vector<std::size_t> order(chances.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    for (std::size_t i = 0; i < order.size(); ++i) {
      chances[order[i]] = 1.0 / static_cast<double>(i + 1);
    }
  }
  std::mt19937 random(static_cast<unsigned>(weft_pe()) * 7919 + 1);
  std::discrete_distribution<std::int64_t> any(chances.begin(), chances.end());
  std::vector<std::int64_t> ids;
  for (int token = 0; token < tokens; ++token) {
    std::vector<std::int64_t> chosen;
    while (chosen.size() < static_cast<std::size_t>(options.topk)) {
      const std::int64_t id = any(random);
      if (std::find(chosen.begin(), chosen.end(), id) == chosen.end()) {
        chosen.push_back(id);
      }
    }
    ids.insert(ids.end(), chosen.begin(), chosen.end());
  }
  return ids;
}

// The most rows of a dispatch that a PE sends to others or gets from them. All PEs.
int busiest_of(const std::vector<std::int64_t>& ids, const Options& options) {
  const auto pes = static_cast<std::size_t>(weft_pe_count());
  const weft::moe::ExpertMap map(options.experts, weft_pe_count());
  auto* rows = static_cast<int*>(weft_calloc(2 * pes, sizeof(int)));
  for (std::size_t token = 0; token * options.topk < ids.size(); ++token) {
    std::vector<bool> goes(pes);
    for (int lane = 0; lane < options.topk; ++lane) {
      const auto id = static_cast<std::int32_t>(ids[token * options.topk + lane]);
      goes[static_cast<std::size_t>(map.rank_of(id))] = true;
    }
    for (std::size_t pe = 0; pe < pes; ++pe) {
      rows[pe] += goes[pe] && static_cast<int>(pe) != weft_pe() ? 1 : 0;
    }
  }
  const int sent = std::accumulate(rows, rows + pes, 0);
  weft_team_reduce(WEFT_TEAM_WORLD, rows + pes, rows, {WEFT_INT32, pes}, WEFT_SUM);
  rows[0] = std::max(sent, rows[pes + static_cast<std::size_t>(weft_pe())]);
  weft_team_reduce(WEFT_TEAM_WORLD, rows + 1, rows, {WEFT_INT32, 1}, WEFT_MAX);
  const int busiest = rows[1];
  weft_free(rows);
  return busiest;
}

class Pair {
 public:
  Pair(const Options& options, int tokens) {
    weft_moe_config config{};
    config.team = WEFT_TEAM_WORLD;
    config.max_tokens = tokens;
    config.hidden = options.hidden;
    config.experts = options.experts;
    config.topk = options.topk;
    config.payload = WEFT_MOE_E4M3;
    config.scales = WEFT_MOE_SCALES_F32;
    config.output = WEFT_MOE_BF16;
    config.layout = options.layout;
    config.alignment = 1;
    config.timeout_s = 20;
    config.memory = WEFT_MOE_DEVICE;
    config.blocks = options.blocks;
    config.outputs_in_place = options.is_in_place ? 1 : 0;
    config.row_per = options.is_per_node ? WEFT_MOE_ROW_PER_NODE : WEFT_MOE_ROW_PER_RANK;
    require(weft_moe_create(&config, &exchange_) == WEFT_OK, "weft_moe_create");
    weft_moe_shape shape{};
    require(weft_moe_get_shape(exchange_, &shape) == WEFT_OK, "weft_moe_get_shape");
    const std::vector<std::int64_t> ids = routes_of(options, tokens);
    busiest_ = busiest_of(ids, options);
    is_by_rank_ = weft::moe::is_by_rank(options.layout);
    const std::size_t values = static_cast<std::size_t>(tokens) * options.hidden;
    tokens_ = {tokens,
               options.is_given
                   ? static_cast<const void*>(on_gpu(std::vector<std::uint8_t>(values, 0x38)))
                   : on_gpu(std::vector<std::uint16_t>(values, 0x3F80)),
               options.is_given ? WEFT_MOE_E4M3 : WEFT_MOE_BF16,
               options.is_given ? on_gpu(std::vector<float>(values / 128, 1.0F)) : nullptr,
               on_gpu(ids),
               on_gpu(std::vector<float>(ids.size(), 0.125F))};
    rows_.x = on_gpu(std::vector<std::uint8_t>(shape.rows_max * shape.payload_bytes));
    rows_.scales = on_gpu(std::vector<std::uint8_t>(shape.rows_max * shape.scale_bytes));
    rows_.weights = on_gpu(std::vector<float>(shape.rows_max * options.topk));
    rows_.ids = on_gpu(std::vector<std::int32_t>(shape.rows_max * options.topk));
    rows_.counts = on_gpu(std::vector<std::int32_t>(options.experts));
    rows_.offsets = on_gpu(std::vector<std::int64_t>(options.experts + 1));
    plan_ = on_gpu(std::vector<std::uint8_t>(shape.plan_bytes));
    experts_rows_ = on_gpu(std::vector<std::uint16_t>(shape.rows_max * options.hidden, 0x3F80));
    outputs_ = {experts_rows_, 0, options.is_fp8 ? WEFT_MOE_FP8 : WEFT_MOE_REDUCED,
                is_by_rank_ ? WEFT_MOE_UNWEIGHTED : WEFT_MOE_WEIGHTS_OF_DISPATCH, nullptr};
    out_ = on_gpu(std::vector<std::uint16_t>(static_cast<std::size_t>(tokens) * options.hidden));
  }

  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  ~Pair() {
    for (const void* address :
         {tokens_.x, tokens_.scales, static_cast<const void*>(tokens_.topk_ids),
          static_cast<const void*>(tokens_.topk_weights), static_cast<const void*>(rows_.counts),
          static_cast<const void*>(rows_.offsets), static_cast<const void*>(plan_), experts_rows_,
          static_cast<const void*>(out_)}) {
      cudaFree(const_cast<void*>(address));
    }
    weft_moe_destroy(exchange_);
  }

  void dispatch(cudaStream_t stream) {
    require(weft_moe_dispatch_on_stream(exchange_, WEFT_MOE_BOTH, &tokens_, &rows_, plan_,
                                        stream) == WEFT_OK,
            "weft_moe_dispatch_on_stream");
  }

  void combine(cudaStream_t stream) {
    outputs_.rows = rows_.outputs != nullptr ? rows_.outputs : experts_rows_;
    require(weft_moe_combine_on_stream(exchange_, WEFT_MOE_BOTH, plan_, &outputs_, out_, stream) ==
                WEFT_OK,
            "weft_moe_combine_on_stream");
  }

  int busiest() const { return busiest_; }

  void check() { require(weft_moe_check(exchange_) == WEFT_OK, "weft_moe_check"); }

 private:
  weft_moe_t exchange_ = nullptr;
  bool is_by_rank_ = false;
  int busiest_ = 0;
  weft_moe_tokens tokens_{};
  weft_moe_rows rows_{};
  std::uint8_t* plan_ = nullptr;
  const void* experts_rows_ = nullptr;
  weft_moe_outputs outputs_{};
  std::uint16_t* out_ = nullptr;
};

// Of one run of a body.
struct Cost {
  double us;
  double bytes;
};

// The median over samples of the time of one of `kChained` runs of `body`, and what this PE puts in
// one.
Cost cost_of(cudaStream_t stream,
             const Options& options,
             bool in_graph,
             const std::function<void()>& body) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayed = nullptr;
  const auto chain = [&] {
    for (int i = 0; i < kChained; ++i) {
      body();
    }
  };
  if (in_graph) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess,
            "capture");
    chain();
    require(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "end of the capture");
    require(cudaGraphInstantiate(&replayed, graph, 0) == cudaSuccess, "cudaGraphInstantiate");
  }
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  const std::uint64_t before = weft::programs::all_put_bytes();
  for (int sample = 0; sample <= options.samples; ++sample) {
    require(weft_barrier_all() == WEFT_OK, "weft_barrier_all");
    cudaEventRecord(begin, stream);
    if (in_graph) {
      cudaGraphLaunch(replayed, stream);
    } else {
      chain();
    }
    cudaEventRecord(end, stream);
    require(cudaStreamSynchronize(stream) == cudaSuccess, "the chain");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    if (sample > 0) {
      times.push_back(milliseconds * 1000 / kChained);
    }
  }
  std::sort(times.begin(), times.end());
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  if (in_graph) {
    cudaGraphExecDestroy(replayed);
    cudaGraphDestroy(graph);
  }
  const auto bytes = static_cast<double>(weft::programs::all_put_bytes() - before);
  return {times[times.size() / 2], bytes / kChained / (options.samples + 1)};
}

// A line of results.
struct ResultLine {
  const char* what;
  int tokens;
  bool in_graph;
  int busiest;
};

void report(const ResultLine& row, const Options& options, Cost cost) {
  auto* mine = static_cast<double*>(weft_malloc(5 * sizeof(double)));
  mine[0] = cost.us;
  mine[3] = cost.bytes;
  weft_team_reduce(WEFT_TEAM_WORLD, mine + 1, mine, {WEFT_DOUBLE, 1}, WEFT_MAX);
  weft_team_reduce(WEFT_TEAM_WORLD, mine + 2, mine, {WEFT_DOUBLE, 1}, WEFT_MIN);
  weft_team_reduce(WEFT_TEAM_WORLD, mine + 4, mine + 3, {WEFT_DOUBLE, 1}, WEFT_MAX);
  if (weft_pe() == 0) {
    std::printf(
        "{\"what\": \"%s\", \"tokens\": %d, \"in_graph\": %s, \"us_most\": %.2f, \"us_least\": "
        "%.2f, "
        "\"pes\": %d, \"node_size\": %d, \"layout\": %d, \"payload\": \"%s\", \"outputs\": \"%s\", "
        "\"row_per\": \"%s\", \"precision\": \"%s\", \"blocks\": %d, \"bytes_put\": %.0f, "
        "\"routing\": \"%s\", \"rows_busiest\": %d, \"hidden\": %d, \"experts\": %d, \"topk\": "
        "%d}\n",
        row.what, row.tokens, row.in_graph ? "true" : "false", mine[1], mine[2], weft_pe_count(),
        weft_node_pe_count(), options.layout, options.is_given ? "given" : "made",
        options.is_in_place ? "in place" : "sent", options.is_per_node ? "node" : "rank",
        options.is_fp8 ? "fp8" : "reduced", options.blocks, mine[4],
        options.is_skewed ? "zipf" : "uniform", row.busiest, options.hidden, options.experts,
        options.topk);
    std::fflush(stdout);
  }
  weft_free(mine);
}

}  // namespace

int main(int count, char** arguments) {
  require(weft_init() == WEFT_OK, "weft_init");
  int gpus = 1;
  cudaGetDeviceCount(&gpus);
  cudaSetDevice(weft_machine_pe() % gpus);
  require(weft_device_init() == WEFT_OK, "weft_device_init");
  const Options options = parse(count, arguments);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  for (const int tokens : options.tokens) {
    Pair pair(options, tokens);
    for (const bool in_graph : {false, true}) {
      report({"dispatch", tokens, in_graph, pair.busiest()}, options,
             cost_of(stream, options, in_graph, [&] { pair.dispatch(stream); }));
      report({"combine", tokens, in_graph, pair.busiest()}, options,
             cost_of(stream, options, in_graph, [&] { pair.combine(stream); }));
      report({"pair", tokens, in_graph, pair.busiest()}, options,
             cost_of(stream, options, in_graph, [&] {
               pair.dispatch(stream);
               pair.combine(stream);
             }));
    }
    pair.check();
  }
  return weft_finalize();
}
