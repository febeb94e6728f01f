#include "moe/src/gpu/turns.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "src/gpu/cuda/driver.hpp"

namespace weft::moe::gpu {

struct Turns::Use {
  cudaEvent_t ended = nullptr;  // of the last kernel, on this stream
  weft_stream_t stream = nullptr;
  bool is_recorded = false;
  int blocks = 0;  // the most of its launches
};

namespace {

struct Process {
  std::mutex mutex;
  std::vector<Turns*> all;
};

// Never destroyed: exchanges may be while the process ends.
Process& process() {
  static auto* const made = new Process;
  return *made;
}

}  // namespace

Turns::Turns() : use_(std::make_unique<Use>()) {
  weft::gpu::check(cudaEventCreateWithFlags(&use_->ended, cudaEventDisableTiming),
                   "cudaEventCreate");
  // From the second exchange on each launch leaves an event. Those before it are over.
  const std::lock_guard lock(process().mutex);
  if (process().all.size() == 1) {
    weft::gpu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  process().all.push_back(this);
}

Turns::~Turns() {
  const std::lock_guard lock(process().mutex);
  std::erase(process().all, this);
  static_cast<void>(cudaEventDestroy(use_->ended));
}

Turns::Turn::Turn(Turns& of, int blocks, const Residency& held, weft_stream_t stream)
    : lock_(process().mutex), of_(of), stream_(stream) {
  of.use_->blocks = std::max(of.use_->blocks, blocks);
  int wanted = 0;
  for (const Turns* one : process().all) {
    wanted += one->use_->blocks;
  }
  have_room_ = wanted <= held.processors * std::max(held.blocks, 1);
}

int Turns::Turn::begin() {
  for (const Turns* one : process().all) {
    const Use& other = *one->use_;
    // Each thread has a stream of this name.
    const bool is_same = other.stream == stream_ && stream_ != cudaStreamPerThread;
    if (have_room_ || one == &of_ || !other.is_recorded || is_same) {
      continue;
    }
    if (const int error = cudaStreamWaitEvent(stream_, other.ended, 0)) {
      return error;
    }
  }
  return 0;
}

int Turns::Turn::end() {
  if (process().all.size() == 1) {
    return 0;
  }
  Use& use = *of_.use_;
  use.stream = stream_;
  use.is_recorded = true;
  return cudaEventRecord(use.ended, stream_);
}

}  // namespace weft::moe::gpu
