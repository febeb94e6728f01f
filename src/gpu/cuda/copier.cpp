#include "src/gpu/copier.hpp"

#include <array>

#include <fmt/format.h>

#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

// The most copies that are started and not known to be complete; a further one waits for the oldest.
constexpr std::size_t kInFlightMax = 256;

struct Lane {
  cudaStream_t stream = nullptr;
  std::array<cudaEvent_t, kInFlightMax> events{};
  std::uint64_t started = 0;
  std::uint64_t done = 0;
};

}  // namespace

struct Copier::Streams {
  Device device;
  std::array<Lane, 2> lanes;
  std::string failure;  // empty: none

  Lane& lane(Direction direction) { return lanes[static_cast<std::size_t>(direction)]; }

  // Checks which of the oldest copies have completed.
  void advance(Lane& lane) {
    while (failure.empty() && lane.done < lane.started) {
      const cudaError_t error = cudaEventQuery(lane.events[lane.done % kInFlightMax]);
      if (error == cudaErrorNotReady) {
        return;
      }
      if (error != cudaSuccess) {
        failure = fmt::format("a copy between the GPU and host memory failed: {}", words(error));
        return;
      }
      ++lane.done;
    }
  }
};

Copier::Copier(const Device& device) : streams_(std::make_unique<Streams>()) {
  use_device(device);
  streams_->device = device;
  int lowest = 0;
  int highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "querying stream priorities");
  for (Lane& lane : streams_->lanes) {
    check(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, highest),
          "creating a stream for copies");
    for (cudaEvent_t& event : lane.events) {
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
    }
  }
}

Copier::~Copier() {
  for (Lane& lane : streams_->lanes) {
    cudaStreamSynchronize(lane.stream);
    for (cudaEvent_t event : lane.events) {
      cudaEventDestroy(event);
    }
    cudaStreamDestroy(lane.stream);
  }
}

std::uint64_t Copier::start(Direction direction,
                            void* dest,
                            const void* source,
                            std::size_t bytes) noexcept {
  use_device_once(streams_->device);
  Lane& lane = streams_->lane(direction);
  while (streams_->failure.empty() && lane.started - lane.done == kInFlightMax) {
    streams_->advance(lane);
  }
  if (streams_->failure.empty()) {
    cudaError_t error = cudaMemcpyAsync(dest, source, bytes, cudaMemcpyDefault, lane.stream);
    if (error == cudaSuccess) {
      error = cudaEventRecord(lane.events[lane.started % kInFlightMax], lane.stream);
    }
    if (error != cudaSuccess) {
      const bool to_gpu = direction == Direction::ToGpu;
      streams_->failure = fmt::format(
          "copying {} bytes {} {} failed: {}; the local side of a put or get in a kernel must be "
          "memory of this GPU, or host memory that it maps",
          bytes, to_gpu ? "to" : "from", to_gpu ? dest : source, words(error));
    }
  }
  return ++lane.started;
}

bool Copier::is_done(Direction direction, std::uint64_t number) noexcept {
  Lane& lane = streams_->lane(direction);
  if (lane.done < number) {
    streams_->advance(lane);
  }
  return lane.done >= number;
}

const std::string* Copier::failure() const noexcept {
  return streams_->failure.empty() ? nullptr : &streams_->failure;
}

}  // namespace weft::gpu
