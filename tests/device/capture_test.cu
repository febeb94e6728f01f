// CUDA graphs are captured in each of CUDA's modes while traffic of other PEs arrives: no capture
// fails, and no traffic is lost. Between nodes (WEFT_NODE_SIZE) threads of libweft make CUDA calls
// meanwhile, which captures in the default mode forbid.
//
// The thousand captures of the first case take 3 s on a GPU.
#include <chrono>
#include <thread>

#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

constexpr std::uint32_t kBytes = 64U << 10U;
constexpr std::uint32_t kPuts = 8;  // of a kernel
constexpr std::size_t kOwn = 4096;

constexpr cudaStreamCaptureMode kModes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
constexpr const char* kModeNames[] = {"global", "thread-local", "relaxed"};

struct Words {
  std::uint64_t* bulk;   // counts puts, which copies carry
  std::uint64_t* small;  // counts signals, which a kernel of libweft's may apply
};

__global__ void __launch_bounds__(256, 1)
    send(std::byte* dest, const std::byte* source, Words words, int pe) {
  for (std::uint32_t i = 0; i < kPuts; ++i) {
    wd::put_signal_nbi<wd::Block>(dest, source, kBytes, {words.bulk, 1, wd::SignalOp::Add}, pe);
    if (threadIdx.x == 0) {
      wd::signal({words.small, 1, wd::SignalOp::Add}, pe);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    wd::quiet();
  }
}

__global__ void take(Words words, std::uint64_t count) {
  wd::wait_until(words.bulk, wd::Comparison::Ge, count);
  wd::wait_until(words.small, wd::Comparison::Ge, count);
}

// What a case needs on this PE.
class Traffic {
 public:
  Traffic() : dest_(kBytes), source_(kBytes), words_(64) {
    suite::require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags");
    suite::require_cuda(cudaStreamCreateWithFlags(&captured_, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags");
    weft_barrier_all();
  }

  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  ~Traffic() {
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(captured_);
  }

  void start() {
    ++kernels_;
    send<<<1, 256, 0, stream_>>>(dest_.get(), source_.get(), words(),
                                 (suite::me() + 1) % suite::pe_count());
    suite::require_cuda(cudaGetLastError(), "launching a kernel");
  }

  // A graph of one node, and `meanwhile` while it is captured. Says whether that went well.
  template <typename Body>
  bool capture(int mode, Body&& meanwhile) {
    cudaGraph_t graph = nullptr;
    suite::require_cuda(cudaStreamBeginCapture(captured_, kModes[mode]), "cudaStreamBeginCapture");
    cudaMemsetAsync(own_.get(), mode + 1, kOwn, captured_);
    meanwhile();
    const cudaError_t error = cudaStreamEndCapture(captured_, &graph);
    if (error != cudaSuccess) {
      suite::fail("a capture in mode %s: %s", kModeNames[mode], cudaGetErrorString(error));
      cudaGetLastError();
      return false;
    }
    suite::require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return true;
  }

  // Everything that was started has arrived everywhere.
  void end() {
    take<<<1, 1, 0, stream_>>>(words(), std::uint64_t{kernels_} * kPuts);
    suite::finish("traffic beside captures");
    const std::vector<std::uint64_t> arrived = words_.read();
    for (const std::size_t at : {std::size_t{0}, std::size_t{32}}) {
      if (arrived[at] != std::uint64_t{kernels_} * kPuts) {
        suite::fail("word %zu counts %llu arrivals of %u", at,
                    static_cast<unsigned long long>(arrived[at]), kernels_ * kPuts);
      }
    }
  }

 private:
  [[nodiscard]] Words words() const { return {words_.get(), words_.get() + 32}; }

  suite::Array<std::byte> dest_;
  suite::Array<std::byte> source_;
  suite::Array<std::uint64_t> words_;
  suite::Array<std::byte> own_{kOwn, suite::Where::Own};
  cudaStream_t stream_ = nullptr;
  cudaStream_t captured_ = nullptr;
  std::uint32_t kernels_ = 0;
};

}  // namespace

DEVICE_TEST(beside_traffic, "captures in all modes while traffic arrives") {
  Traffic traffic;
  const std::uint32_t rounds = suite::rounds(1000, 10);
  bool is_good = true;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    for (int mode = 0; mode < 3; ++mode) {
      traffic.start();
      is_good = is_good && traffic.capture(mode, [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        suite::require_weft(weft_device_check(), "weft_device_check during a capture");
      });
    }
  }
  traffic.end();
}

DEVICE_TEST(beside_setup, "memory of the heap is taken while a graph is captured") {
  Traffic traffic;
  for (int mode = 0; mode < 3; ++mode) {
    traffic.start();
    void* memory = nullptr;
    traffic.capture(mode, [&memory] { memory = weft_device_calloc(1, 1U << 20U); });
    suite::require(memory != nullptr, "weft_device_calloc during a capture");
    suite::require_weft(weft_device_free(memory), "weft_device_free");
  }
  traffic.end();
}
