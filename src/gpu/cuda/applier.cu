#include <weft/device.cuh>

#include "src/gpu/applier.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

// Enough rounds to empty a full inbox.
constexpr std::uint32_t kRounds = 16;

__global__ void apply_inbox() {
  if (weft::device::state().ring_count == 0) {
    return;
  }
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    if (weft::device::detail::drain_inbox(weft::device::detail::warp_lanes()) == 0) {
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
