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
  std::uintptr_t known_page = UINTPTR_MAX;  // of the GPU's side: CUDA knows it
};

// CUDA maps memory in pages of this size at least.
constexpr unsigned kPageShift = 21;

}  // namespace

struct Copier::Streams {
  Device device;
  std::array<Lane, 2> lanes;
  std::string failure;  // empty: none

  bool takes_any_address = false;  // the GPU reads all memory of the process

  // CUDA takes an address that it does not know for memory of the process, and reads there.
  bool is_known(Lane& lane, const void* address) const {
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) >> kPageShift;
    if (page != lane.known_page && !takes_any_address) {
      cudaPointerAttributes found{};
      if (cudaPointerGetAttributes(&found, address) != cudaSuccess ||
          found.type == cudaMemoryTypeUnregistered) {
        return false;
      }
      lane.known_page = page;
    }
    return true;
  }

  cudaError_t start(Lane& lane, void* dest, const void* source, std::size_t bytes) const {
    if (const cudaError_t error =
            cudaMemcpyAsync(dest, source, bytes, cudaMemcpyDefault, lane.stream);
        error != cudaSuccess) {
      return error;
    }
    return cudaEventRecord(lane.events[lane.started % kInFlightMax], lane.stream);
  }

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
  int takes_any = 0;
  check(cudaDeviceGetAttribute(&takes_any, cudaDevAttrPageableMemoryAccess, device.index),
        "querying which memory the GPU reads");
  streams_->takes_any_address = takes_any != 0;
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
  const void* of_gpu = direction == Direction::ToGpu ? dest : source;
  if (streams_->failure.empty()) {
    const cudaError_t error = streams_->is_known(lane, of_gpu)
                                  ? streams_->start(lane, dest, source, bytes)
                                  : cudaErrorInvalidValue;
    if (error != cudaSuccess) {
      streams_->failure = fmt::format(
          "copying {} bytes {} {} failed: {}; the local side of a put or get in a kernel must be "
          "memory of this GPU, or host memory that it maps",
          bytes, direction == Direction::ToGpu ? "to" : "from", of_gpu, words(error));
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
