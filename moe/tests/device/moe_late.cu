// A PE that comes late to an exchange of weft::moe on GPUs, by more than its timeout:
// device_moe_late CASE, with two PEs. test_device_programs.py knows what is said and what ends. The
// cases:
//   graph        a graph of a dispatch and a combine, replayed; a missing PE is an error
//   graph-mask   the same, and it is masked
//   stream       calls on a stream; nobody calls weft_moe_check
// Each is a process of its own, since a kernel that ends early takes its CUDA context with it.
#include <weft/device.h>
#include <weft/moe.h>

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

constexpr int kTokens = 4;
constexpr int kHidden = 64;
constexpr int kTopk = 2;
constexpr double kTimeoutS = 2;
constexpr float kValue = 1;

void say(const char* step, const std::string& words) {
  std::printf("PE %d: %s: %s\n", weft_pe(), step, words.c_str());
  std::fflush(stdout);
}

void require(bool is_so, const char* what) {
  if (!is_so) {
    say(what, weft_last_error());
    std::_Exit(1);
  }
}

template <typename T>
T* on_gpu(std::size_t count, const std::vector<T>& values = {}) {
  T* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)) == cudaSuccess &&
              cudaMemset(memory, 0, count * sizeof(T)) == cudaSuccess &&
              cudaMemcpy(memory, values.data(), values.size() * sizeof(T),
                         cudaMemcpyHostToDevice) == cudaSuccess,
          "memory");
  return memory;
}

// Every token goes to an expert of each PE, whose rows come back as they are: each value is
// doubled.
class LatePair {
 public:
  explicit LatePair(weft_moe_on_timeout on_timeout) {
    weft_moe_config config{};
    config.team = WEFT_TEAM_WORLD;
    config.max_tokens = kTokens;
    config.hidden = kHidden;
    config.experts = 4;
    config.topk = kTopk;
    config.payload = config.output = WEFT_MOE_F32;
    config.layout = WEFT_MOE_EXPERT_PADDED;
    config.alignment = 1;
    config.timeout_s = kTimeoutS;
    config.on_timeout = on_timeout;
    config.memory = WEFT_MOE_DEVICE;
    require(weft_moe_create(&config, &exchange_) == WEFT_OK, "weft_moe_create");
    weft_moe_shape shape{};
    require(weft_moe_get_shape(exchange_, &shape) == WEFT_OK, "weft_moe_get_shape");
    std::vector<std::int64_t> ids;
    for (int token = 0; token < kTokens; ++token) {
      ids.insert(ids.end(), {0, 2});
    }
    x_ = on_gpu(kTokens * kHidden, std::vector<float>(kTokens * kHidden, kValue));
    ids_ = on_gpu(ids.size(), ids);
    weights_ = on_gpu(ids.size(), std::vector<float>(ids.size(), 1));
    plan_ = on_gpu<std::byte>(shape.plan_bytes);
    rows_.x = on_gpu<std::byte>(shape.rows_max * shape.payload_bytes);
    rows_.weights = on_gpu<float>(shape.rows_max);
    rows_.counts = on_gpu<std::int32_t>(static_cast<std::size_t>(shape.local_experts));
    rows_.offsets = on_gpu<std::int64_t>(static_cast<std::size_t>(shape.local_experts) + 1);
    out_ = on_gpu<float>(kTokens * kHidden);
  }

  // Empty, or which call failed.
  std::string enqueue(cudaStream_t stream) {
    const weft_moe_tokens tokens{kTokens, x_, WEFT_MOE_F32, nullptr, ids_, weights_};
    int status =
        weft_moe_dispatch_on_stream(exchange_, WEFT_MOE_BOTH, &tokens, &rows_, plan_, stream);
    if (status != WEFT_OK) {
      return "weft_moe_dispatch_on_stream: " + std::to_string(status);
    }
    const weft_moe_outputs outputs{rows_.x, 0, WEFT_MOE_REDUCED, WEFT_MOE_WEIGHTS_OF_DISPATCH,
                                   nullptr};
    status = weft_moe_combine_on_stream(exchange_, WEFT_MOE_BOTH, plan_, &outputs, out_, stream);
    return status == WEFT_OK ? "" : "weft_moe_combine_on_stream: " + std::to_string(status);
  }

  // "right", "wrong", or CUDA's error.
  std::string result(cudaStream_t stream) const {
    std::vector<float> out(kTokens * kHidden);
    cudaError_t error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess) {
      error = cudaMemcpy(out.data(), out_, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
    }
    if (error != cudaSuccess) {
      return cudaGetErrorName(error);
    }
    for (const float value : out) {
      if (value != 2 * kValue) {
        return "wrong";
      }
    }
    return "right";
  }

  [[nodiscard]] weft_moe_t exchange() const { return exchange_; }

 private:
  weft_moe_t exchange_ = nullptr;
  float* x_ = nullptr;
  std::int64_t* ids_ = nullptr;
  float* weights_ = nullptr;
  std::byte* plan_ = nullptr;
  weft_moe_rows rows_{};
  float* out_ = nullptr;
};

void come_late() {
  if (weft_pe() == 1) {
    ::usleep(static_cast<useconds_t>(kTimeoutS * 3e6));
  }
}

void replay(LatePair& pair, cudaStream_t stream) {
  require(pair.enqueue(stream).empty() && pair.result(stream) == "right",
          "a call before the graph");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayed = nullptr;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess &&
              pair.enqueue(stream).empty() && cudaStreamEndCapture(stream, &graph) == cudaSuccess &&
              cudaGraphInstantiate(&replayed, graph, 0) == cudaSuccess,
          "capture");
  for (const char* step : {"before", "late", "after"}) {
    if (std::strcmp(step, "late") == 0) {
      come_late();
    }
    const cudaError_t error = cudaGraphLaunch(replayed, stream);
    say(step, error == cudaSuccess ? pair.result(stream) : cudaGetErrorName(error));
  }
}

void call(LatePair& pair, cudaStream_t stream) {
  for (const char* step : {"first", "before", "late"}) {
    if (std::strcmp(step, "late") == 0) {
      come_late();
    }
    const std::string failed = pair.enqueue(stream);
    say(step, failed.empty() ? pair.result(stream) : failed);
  }
  ::sleep(2);  // time for others to say it
  say("after", pair.enqueue(stream));
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  int gpus = 1;
  if (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0) {
    cudaSetDevice(weft_machine_pe() % gpus);
  }
  require(weft_device_init() == WEFT_OK, "weft_device_init");
  LatePair pair(name == "graph-mask" ? WEFT_MOE_MASK : WEFT_MOE_ERROR);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreate(&stream) == cudaSuccess, "cudaStreamCreate");
  if (name == "stream") {
    call(pair, stream);
  } else {
    replay(pair, stream);
  }
  const int checked = weft_moe_check(pair.exchange());
  say("check",
      std::to_string(checked) + (checked == WEFT_OK ? "" : std::string(": ") + weft_last_error()));
  const int of_device = weft_device_check();
  say("device", std::to_string(of_device) +
                    (of_device == WEFT_OK ? "" : std::string(": ") + weft_last_error()));
  weft_barrier_all();
  ::sleep(2);  // the thread that says who is missing looks every 50 ms
  // CUDA may be lost: no weft_finalize.
  std::_Exit(0);
}
