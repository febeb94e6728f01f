#include <weft/device.cuh>

#include <condition_variable>
#include <mutex>
#include <thread>

#include <pthread.h>

#include "src/gpu/applier.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

// Enough rounds to empty a full inbox.
constexpr std::uint32_t kRounds = 16;
// How long it looks at an inbox that is empty, or that a slow thread holds: that one lets go after
// 4 commands.
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
      continue;
    }
    // Each lane reads the time itself. If one left before the others, these would go on without it,
    // and drain_inbox needs all.
    if (__any_sync(~0U, weft::device::now_ns() - last_ns >= kIdleNs ? 1 : 0) != 0) {
      return;
    }
    __nanosleep(kNapNs);
  }
}

}  // namespace

struct Applier::Stream {
  Device device;
  cudaStream_t stream = nullptr;
  cudaEvent_t last = nullptr;

  std::mutex mutex;
  std::condition_variable asked;
  bool is_wanted = false;  // guarded by `mutex`, as is the next
  bool stops = false;
  std::thread thread;

  void run() {
    ignore_captures();
    std::unique_lock lock(mutex);
    for (;;) {
      asked.wait(lock, [this] { return is_wanted || stops; });
      if (stops) {
        return;
      }
      is_wanted = false;
      lock.unlock();
      launch();
      lock.lock();
    }
  }

  // May wait for kernels of the program, while another thread makes CUDA load one.
  void launch() noexcept {
    use_device_once(device);
    if (cudaEventQuery(last) == cudaErrorNotReady) {
      return;  // any other answer is no reason to leave the inbox alone
    }
    apply_inbox<<<1, 32, 0, stream>>>();
    cudaEventRecord(last, stream);
  }

  void ask(bool& what) noexcept {
    {
      const std::lock_guard lock(mutex);
      what = true;
    }
    asked.notify_one();
  }
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
  stream_->launch();
  check(cudaStreamSynchronize(stream_->stream), "running the kernel that applies the inbox");
  stream_->thread = std::thread([this] { stream_->run(); });
  ::pthread_setname_np(stream_->thread.native_handle(), "weft-applier");
}

Applier::~Applier() {
  stream_->ask(stream_->stops);
  stream_->thread.join();
  cudaStreamSynchronize(stream_->stream);
  cudaEventDestroy(stream_->last);
  cudaStreamDestroy(stream_->stream);
}

void Applier::wake() noexcept {
  stream_->ask(stream_->is_wanted);
}

}  // namespace weft::gpu
