#include <weft/device.cuh>

#include "src/gpu/applier.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

// Enough rounds to empty a full inbox.
constexpr std::uint32_t kRounds = 16;
// How long it looks at an inbox that is empty, or that a slow thread holds: that one lets go after 4 commands.
constexpr std::uint64_t kIdleNs = 40'000;
constexpr std::uint32_t kNapNs = 300;

__global__ void apply_inbox() {
  if (weft::device::state().ring_count == 0) {
    return;
  }
  std::uint64_t last_ns = weft::device::now_ns();
  for (std::uint32_t rounds = 0; rounds < kRounds;) {
    if (weft::device::detail::drain_inbox(weft::device::detail::warp_lanes()) != 0) {
      ++rounds;
      last_ns = weft::device::now_ns();
    } else if (weft::device::now_ns() - last_ns < kIdleNs) {
      __nanosleep(kNapNs);
    } else {
      return;
    }
  }
}

}  // namespace

struct Applier::Stream {
  Device device;
  cudaStream_t stream = nullptr;
  cudaEvent_t last = nullptr;
};

Applier::Applier(const Device& device) : stream_(std::make_unique<Stream>()) {
  use_device(device);
  stream_->device = device;
  int lowest = 0;
  int highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "querying stream priorities");
  check(cudaStreamCreateWithPriority(&stream_->stream, cudaStreamNonBlocking, highest),
        "creating a stream");
  check(cudaEventCreateWithFlags(&stream_->last, cudaEventDisableTiming), "creating an event");
  wake();
  check(cudaStreamSynchronize(stream_->stream), "running the kernel that applies the inbox");
}

Applier::~Applier() {
  cudaStreamSynchronize(stream_->stream);
  cudaEventDestroy(stream_->last);
  cudaStreamDestroy(stream_->stream);
}

void Applier::wake() noexcept {
  use_device_once(stream_->device);
  if (cudaEventQuery(stream_->last) == cudaErrorNotReady) {
    return;
  }
  apply_inbox<<<1, 32, 0, stream_->stream>>>();
  cudaEventRecord(stream_->last, stream_->stream);
}

}  // namespace weft::gpu
