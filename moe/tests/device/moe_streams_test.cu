// Two exchanges of weft::moe on two streams of a GPU: their kernels take turns where it has no room
// for the blocks of both, and do not where it has.
#include <cuda_runtime.h>

#include "moe/tests/device/moe_pair.cuh"

namespace {

namespace wd = weft::device;
using namespace suite::moe;

__global__ void pause(std::uint64_t ns) {
  const std::uint64_t start = wd::now_ns();
  while (wd::now_ns() - start < ns) {
  }
}

// An exchange, what it sends, and where.
struct Choice {
  Pair pair;
  Tokens tokens;
  GpuDispatch gpu;
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;

  explicit Choice(const Sizes& sizes)
      : pair(sizes), tokens(make_tokens(sizes, 0, 0)), gpu(pair, tokens) {
    suite::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags");
    suite::require_cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming),
                        "cudaEventCreateWithFlags");
  }

  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;

  ~Choice() {
    cudaEventDestroy(done);
    cudaStreamDestroy(stream);
  }

  void dispatch() {
    suite::require_weft(gpu.run(WEFT_MOE_BOTH, stream), "weft_moe_dispatch_on_stream");
    suite::require_cuda(cudaEventRecord(done, stream), "cudaEventRecord");
  }

  [[nodiscard]] bool is_done() const { return cudaEventQuery(done) == cudaSuccess; }
};

constexpr int kAllBlocks = 1 << 20;  // as many as the GPU holds

Sizes sizes_with(int blocks) {
  Sizes sizes = few_tokens();
  sizes.blocks = blocks;
  return sizes;
}

DEVICE_TEST(moe_turns,
            "exchanges on two streams take turns where their blocks have no room together") {
  Choice first(sizes_with(kAllBlocks));
  Choice second(sizes_with(kAllBlocks));
  for (int call = 0; call < 3; ++call) {
    pause<<<1, 1, 0, first.stream>>>(200'000'000);
    first.dispatch();
    second.dispatch();
    while (!second.is_done()) {
    }
    if (!first.is_done()) {
      suite::fail("call %d: the second exchange's kernel ended before the first one's", call);
    }
    suite::finish("dispatches in turn");
    suite::require_weft(weft_moe_check(first.pair.device()), "weft_moe_check");
    suite::require_weft(weft_moe_check(second.pair.device()), "weft_moe_check");
  }
}

// The order differs between PEs: were they to take turns, each would wait for the other.
DEVICE_TEST(moe_room,
            "exchanges whose blocks have room together wait for nothing but their peers") {
  Choice first(sizes_with(1));
  Choice second(sizes_with(1));
  const bool is_odd = suite::me() % 2 == 1;
  for (int call = 0; call < 3; ++call) {
    (is_odd ? second : first).dispatch();
    (is_odd ? first : second).dispatch();
    suite::finish("dispatches beside each other");
    suite::require_weft(weft_moe_check(first.pair.device()), "weft_moe_check");
    suite::require_weft(weft_moe_check(second.pair.device()), "weft_moe_check");
  }
}

}  // namespace
