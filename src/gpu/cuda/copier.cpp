#include "src/gpu/copier.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/clock.hpp"
#include "src/base/log.hpp"
#include "src/gpu/cuda/driver.hpp"
#include "src/gpu/longest_wait.hpp"

namespace weft::gpu {
namespace {

// The most copies that are started and not known to be complete; a further one waits for the
// oldest.
constexpr std::size_t kInFlightMax = 256;

// Errors of a query that CUDA refuses because a graph is being captured. They say nothing about the
// copy.
bool is_of_capture(CUresult error) {
  return error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         error <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// CUDA maps memory in pages of this size at least.
constexpr unsigned kPageShift = 21;

// Shorter copies to the GPU may be carried out by its compute engine, which does not serve two
// contexts at once: beside a kernel that runs they took 2.4 ms, and copies of two rows 8 us (H100,
// CUDA 13.0).
constexpr std::size_t kPlainBytesMin = 64 << 10;

// A context of our own. CUDA calls of the program that wait for its kernels also hold back the
// copies of its context: the first launch of a kernel, cudaFree, cudaMemcpy of pageable memory.
// Kernels that wait for such copies would never end.
class CopyContext {
 public:
  explicit CopyContext(const Device& device) {
    use_device(device);
    const Driver& d = driver();
    CUcontext before = nullptr;
    check(d.ctx_get_current(&before), "querying the CUDA context");
    const CUresult error = d.ctx_create(&context_, nullptr, 0, 0, device.index);
    is_own_ = error == CUDA_SUCCESS;
    if (is_own_) {
      // It runs no kernels, so it needs no stacks: 264 MiB on an H100.
      d.ctx_set_limit(CU_LIMIT_STACK_SIZE, 0);
    } else {
      context_ = before;
      log::warn(
          "GPU {}: no second CUDA context for the proxy's copies ({}; it takes about 300 MiB). "
          "They use the program's, "
          "where calls that wait for a kernel, such as cudaFree and the first launch of another "
          "kernel, hold them back: "
          "a kernel that waits for another node may then wait for ever",
          device.index, words(error));
    }
    d.ctx_set_current(before);
  }

  CopyContext(const CopyContext&) = delete;
  CopyContext& operator=(const CopyContext&) = delete;

  ~CopyContext() {
    if (is_own_) {
      driver().ctx_destroy(context_);
    }
  }

  [[nodiscard]] CUcontext get() const { return context_; }

 private:
  CUcontext context_ = nullptr;
  bool is_own_ = false;
};

// While it lives, the context is the calling thread's current one.
class Current {
 public:
  explicit Current(CUcontext context) {
    driver().ctx_get_current(&before_);
    driver().ctx_set_current(context);
  }

  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  ~Current() { driver().ctx_set_current(before_); }

 private:
  CUcontext before_ = nullptr;
};

struct CopyStream {
  CUstream stream = nullptr;
  std::array<CUevent, kInFlightMax> events{};
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  LongestWait longest_wait;
  std::array<std::uintptr_t, 64>
      known_pages{};  // of the GPU's side: CUDA knows them; by their number
};

CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

CUresult copy_rows(CUstream stream, void* dest, const void* source, std::size_t row_bytes) {
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = source;
  rows.srcPitch = row_bytes;
  rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.dstDevice = address_of(dest);
  rows.dstPitch = row_bytes;
  rows.WidthInBytes = row_bytes;
  rows.Height = 2;
  return driver().memcpy_2d_async(&rows, stream);
}

// From host memory, as two rows of equal length; of an odd number of bytes the last but one is
// copied twice.
CUresult copy_short(CUstream stream, void* dest, const void* source, std::size_t bytes) {
  const std::size_t even = bytes & ~std::size_t{1};
  CUresult error = copy_rows(stream, dest, source, even / 2);
  if (error == CUDA_SUCCESS && even != bytes) {
    error = copy_rows(stream, static_cast<std::byte*>(dest) + bytes - 2,
                      static_cast<const std::byte*>(source) + bytes - 2, 1);
  }
  return error;
}

}  // namespace

struct Copier::Request {
  CopyDirection direction;
  void* dest;
  const void* source;
  std::size_t bytes;
  bool may_split = true;  // into rows
};

struct Copier::Streams {
  Streams(const Device& of, std::function<bool(const void*)> is_heap_memory)
      : device(of), context(of), is_heap(std::move(is_heap_memory)) {}

  Device device;
  CopyContext context;
  std::function<bool(const void*)> is_heap;
  std::array<CopyStream, 2> by_direction;
  std::string failure;  // empty: none

  bool takes_any_address = false;  // the GPU reads all memory of the process

  // CUDA treats an address that it does not know as pageable host memory, and reads it.
  bool is_known(CopyStream& copies, const void* address) const {
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) >> kPageShift;
    std::uintptr_t& known = copies.known_pages[page % copies.known_pages.size()];
    if (page != known && !takes_any_address && !(is_heap && is_heap(address))) {
      cudaPointerAttributes found{};
      if (cudaPointerGetAttributes(&found, address) != cudaSuccess ||
          found.type == cudaMemoryTypeUnregistered) {
        return false;
      }
      known = page;
    }
    return true;
  }

  CUresult start(const Request& request) {
    const auto& [direction, dest, source, bytes, may_split] = request;
    const Current current(context.get());
    CopyStream& copies = this->stream_of(direction);
    const bool is_short =
        may_split && direction == CopyDirection::ToGpu && bytes > 1 && bytes < kPlainBytesMin;
    const CUresult error = is_short ? copy_short(copies.stream, dest, source, bytes)
                                    : driver().memcpy_async(address_of(dest), address_of(source),
                                                            bytes, copies.stream);
    return error != CUDA_SUCCESS
               ? error
               : driver().event_record(copies.events[copies.started % kInFlightMax], copies.stream);
  }

  CopyStream& stream_of(CopyDirection direction) {
    return by_direction[static_cast<std::size_t>(direction)];
  }

  // Checks which of the oldest copies have completed.
  void advance(CopyStream& copies) {
    const Current current(context.get());
    while (failure.empty() && copies.done < copies.started) {
      const CUresult error = driver().event_query(copies.events[copies.done % kInFlightMax]);
      if (error == CUDA_ERROR_NOT_READY || is_of_capture(error)) {
        report_long_wait(copies);
        return;
      }
      if (error != CUDA_SUCCESS) {
        failure = fmt::format("a copy between the GPU and host memory failed: {}", words(error));
        return;
      }
      ++copies.done;
    }
  }

  static void report_long_wait(CopyStream& copies) {
    if (copies.longest_wait.is_too_long(copies.done, now_ns())) {
      log::warn(
          "a copy of the proxy between GPU and host memory has not completed for {} s, and blocks "
          "kernels that wait for other nodes. Probably a CUDA call of this process that waits for "
          "such a kernel holds it back: cudaFree, cudaMemcpy of pageable memory, the first launch "
          "of a kernel. Copies of memory of weft_device_malloc are not held back (docs/GPU.md)",
          LongestWait::kNsMax / 1'000'000'000);
    }
  }
};

Copier::Copier(const Device& device, std::function<bool(const void* address)> is_heap)
    : streams_(std::make_unique<Streams>(device, std::move(is_heap))) {
  int takes_any = 0;
  check(cudaDeviceGetAttribute(&takes_any, cudaDevAttrPageableMemoryAccess, device.index),
        "querying which memory the GPU reads");
  streams_->takes_any_address = takes_any != 0;
  const Current current(streams_->context.get());
  const Driver& d = driver();
  int lowest = 0;
  int highest = 0;
  check(d.ctx_get_stream_priority_range(&lowest, &highest), "querying stream priorities");
  for (CopyStream& copies : streams_->by_direction) {
    check(d.stream_create_with_priority(&copies.stream, CU_STREAM_NON_BLOCKING, highest),
          "creating a stream for copies");
    for (CUevent& event : copies.events) {
      check(d.event_create(&event, CU_EVENT_DISABLE_TIMING), "creating an event");
    }
  }
}

Copier::~Copier() {
  const Current current(streams_->context.get());
  for (CopyStream& copies : streams_->by_direction) {
    driver().stream_synchronize(copies.stream);
    for (CUevent event : copies.events) {
      driver().event_destroy(event);
    }
    driver().stream_destroy(copies.stream);
  }
}

std::uint64_t Copier::start(CopyDirection direction,
                            void* dest,
                            const void* source,
                            std::size_t bytes) noexcept {
  return start({.direction = direction, .dest = dest, .source = source, .bytes = bytes});
}

std::uint64_t Copier::start_whole(void* dest, const void* source, std::size_t bytes) noexcept {
  return start({.direction = CopyDirection::ToGpu,
                .dest = dest,
                .source = source,
                .bytes = bytes,
                .may_split = false});
}

std::uint64_t Copier::start(const Request& request) noexcept {
  const CopyDirection direction = request.direction;
  use_device_once(streams_->device);
  CopyStream& copies = streams_->stream_of(direction);
  while (streams_->failure.empty() && copies.started - copies.done == kInFlightMax) {
    streams_->advance(copies);
  }
  const void* of_gpu = direction == CopyDirection::ToGpu ? request.dest : request.source;
  if (streams_->failure.empty()) {
    const CUresult error =
        streams_->is_known(copies, of_gpu) ? streams_->start(request) : CUDA_ERROR_INVALID_VALUE;
    if (error != CUDA_SUCCESS) {
      streams_->failure = fmt::format(
          "copying {} bytes {} {} failed: {}; the local side of a put or get in a kernel must be "
          "memory of this GPU, or host memory that it maps",
          request.bytes, direction == CopyDirection::ToGpu ? "to" : "from", of_gpu, words(error));
    }
  }
  return ++copies.started;
}

bool Copier::is_done(CopyDirection direction, std::uint64_t number) noexcept {
  CopyStream& copies = streams_->stream_of(direction);
  if (copies.done < number) {
    streams_->advance(copies);
  }
  return copies.done >= number;
}

const std::string* Copier::failure() const noexcept {
  return streams_->failure.empty() ? nullptr : &streams_->failure;
}

}  // namespace weft::gpu
