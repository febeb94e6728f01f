// Streams, events, graphs and launches: a stream is a thread that does what was added to it, in its
// order. The blocks of a kernel run in threads of their own, as many at once as the GPU holds.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/block.hpp"
#include "tests/emulated_gpu/captures.hpp"
#include "tests/emulated_gpu/gpu.hpp"

using Work = std::function<void()>;

struct CUgraph_st {
  std::vector<Work> nodes;
};

struct CUgraphExec_st {
  std::vector<Work> nodes;
};

struct CUstream_st {
  bool is_blocking = true;  // waits for the default stream, and that one for it
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> work;    // guarded by `mutex`, as all that follows
  std::uint64_t added = 0;  // how much work, ever
  std::uint64_t done = 0;
  bool stops = false;
  CUgraph_st* captured = nullptr;
  weft_emulated::Capture capture;
  std::thread thread;

  CUstream_st() {
    thread = std::thread([this] { run(); });
  }

  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
    thread.join();
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !work.empty() || stops; });
      if (work.empty()) {
        return;
      }
      const Work next = std::move(work.front());
      work.pop_front();
      lock.unlock();
      next();
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }

  std::uint64_t add(Work next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
    changed.notify_all();
    return ++added;
  }

  std::uint64_t last() {
    const std::lock_guard lock(mutex);
    return added;
  }

  bool is_done(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    return done >= number;
  }

  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done >= number; });
  }
};

struct CUevent_st {
  std::shared_ptr<CUstream_st> stream;
  std::uint64_t number = 0;
};

namespace weft_emulated {
namespace {

using Stream = std::shared_ptr<CUstream_st>;

// The default stream first. Never destroyed: threads of the process may still use them when it
// ends.
struct Streams {
  std::mutex mutex;
  std::vector<Stream> all;
};

Streams& streams() {
  static auto* one = new Streams{{}, {std::make_shared<CUstream_st>()}};
  return *one;
}

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

Stream find(cudaStream_t stream) {
  const std::lock_guard lock(streams().mutex);
  if (is_default(stream)) {
    return streams().all.front();
  }
  const auto found =
      std::ranges::find_if(streams().all, [&](const Stream& one) { return one.get() == stream; });
  return found == streams().all.end() ? nullptr : *found;
}

std::vector<Stream> all_streams() {
  const std::lock_guard lock(streams().mutex);
  return streams().all;
}

// What was added to them until now.
std::vector<std::pair<Stream, std::uint64_t>> last_of(const std::vector<Stream>& of) {
  std::vector<std::pair<Stream, std::uint64_t>> last;
  for (const Stream& stream : of) {
    last.emplace_back(stream, stream->last());
  }
  return last;
}

std::atomic<bool> lost{false};

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) {
    last_error = error;
  }
  return error;
}

cudaError_t state() {
  return note(lost ? cudaErrorLaunchFailure : cudaSuccess);
}

// ---- Threads that run blocks

class Runners {
 public:
  void run(std::function<void(Block&)> work) {
    std::unique_lock lock(mutex_);
    work_.push_back(std::move(work));
    if (idle_ < work_.size()) {
      std::thread([this] { serve(); }).detach();
    }
    changed_.notify_one();
  }

 private:
  void serve() {
    Block block;
    block.adopt();
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return !work_.empty(); });
      --idle_;
      const auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work(block);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void(Block&)>> work_;
  std::size_t idle_ = 0;
};

Runners& runners() {
  static auto* one = new Runners;
  return *one;
}

// To its end.
void run_kernel(Kernel& kernel) {
  const auto held = static_cast<unsigned>(
      machine().processors *
      residency(static_cast<int>(kernel.block.x * kernel.block.y * kernel.block.z), 0));
  const unsigned at_once = std::min(kernel.blocks(), held);
  std::mutex mutex;
  std::condition_variable ended;
  unsigned running = at_once;
  for (unsigned i = 0; i < at_once; ++i) {
    runners().run([&](Block& block) {
      for (unsigned number = 0;
           !kernel.has_failed && (number = kernel.next_block++) < kernel.blocks();) {
        block.run(kernel, number);
      }
      const std::lock_guard lock(mutex);
      if (--running == 0) {
        ended.notify_one();
      }
    });
  }
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return running == 0; });
  if (kernel.has_failed) {
    lost = true;
  }
}

}  // namespace

bool is_lost() {
  return lost;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  enter();
  if (lost) {
    return state();
  }
  const Stream found = find(stream);
  if (found == nullptr) {
    return note(cudaErrorInvalidResourceHandle);
  }
  {
    const std::lock_guard lock(found->mutex);
    if (found->captured != nullptr) {
      found->captured->nodes.push_back(std::move(work));
      return cudaSuccess;
    }
  }
  std::vector<Stream> before;
  if (is_default(stream)) {
    before = all_streams();
    std::erase_if(before, [&](const Stream& one) { return one == found || !one->is_blocking; });
  } else if (found->is_blocking) {
    before = {find(nullptr)};
  }
  found->add([work = std::move(work), last = last_of(before)] {
    for (const auto& [other, number] : last) {
      other->wait(number);
    }
    if (!lost) {
      work();
    }
  });
  return cudaSuccess;
}

cudaError_t launch(dim3 grid,
                   dim3 block,
                   std::size_t shared_bytes,
                   cudaStream_t stream,
                   bool is_cooperative,
                   std::function<void()> run) {
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > 1024 || blocks == 0 || shared_bytes > kSharedBytesMax) {
    return note(cudaErrorInvalidConfiguration);
  }
  if (is_cooperative &&
      blocks > static_cast<std::size_t>(machine().processors *
                                        residency(static_cast<int>(threads), shared_bytes))) {
    return note(cudaErrorCooperativeLaunchTooLarge);
  }
  return enqueue(stream, [=, run = std::move(run)] {
    Kernel kernel;
    kernel.grid = grid;
    kernel.block = block;
    kernel.is_cooperative = is_cooperative;
    kernel.run = run;
    run_kernel(kernel);
  });
}

}  // namespace weft_emulated

using namespace weft_emulated;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  enter();
  auto made = std::make_shared<CUstream_st>();
  made->is_blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = made.get();
  const std::lock_guard lock(streams().mutex);
  streams().all.push_back(std::move(made));
  return state();
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream,
                                         unsigned int flags,
                                         int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Stream found = find(stream);
  if (found == nullptr || is_default(stream)) {
    return note(cudaErrorInvalidResourceHandle);
  }
  const std::lock_guard lock(streams().mutex);
  std::erase(streams().all, found);
  // Its last owner waits for its work, as CUDA does in the background.
  std::thread([last = std::move(found)]() mutable { last.reset(); }).detach();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  enter();
  if (!may_be_unsafe()) {
    return note(cudaErrorStreamCaptureUnsupported);
  }
  const Stream found = find(stream);
  if (found == nullptr) {
    return note(cudaErrorInvalidResourceHandle);
  }
  found->wait(found->last());
  return state();
}

cudaError_t cudaDeviceSynchronize() {
  enter();
  if (!may_be_unsafe()) {
    return note(cudaErrorStreamCaptureUnsupported);
  }
  for (const auto& [stream, number] : last_of(all_streams())) {
    stream->wait(number);
  }
  return state();
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = std::exchange(last_error, cudaSuccess);
  return lost ? cudaErrorLaunchFailure : error;
}

// ---- Copies

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  return enqueue(stream, [=] {
    std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemcpy2DAsync(void* to,
                              size_t to_pitch,
                              const void* from,
                              size_t from_pitch,
                              size_t width,
                              size_t height,
                              cudaMemcpyKind /*kind*/,
                              cudaStream_t stream) {
  return enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * to_pitch,
                  static_cast<const std::byte*>(from) + row * from_pitch, width);
    }
  });
}

cudaError_t cudaMemcpy2D(void* to,
                         size_t to_pitch,
                         const void* from,
                         size_t from_pitch,
                         size_t width,
                         size_t height,
                         cudaMemcpyKind kind) {
  const cudaError_t error =
      cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

// ---- Events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  enter();
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = find(stream);
  event->number = event->stream->last();
  return state();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  if (event->stream == nullptr) {
    return state();
  }
  return enqueue(stream,
                 [awaited = event->stream, number = event->number] { awaited->wait(number); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!may_be_unsafe()) {
    return note(cudaErrorStreamCaptureUnsupported);
  }
  if (lost) {
    return state();
  }
  return event->stream == nullptr || event->stream->is_done(event->number) ? cudaSuccess
                                                                           : cudaErrorNotReady;
}

// ---- Graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Stream found = find(stream);
  if (found == nullptr || is_default(stream)) {
    return note(cudaErrorStreamCaptureUnsupported);
  }
  const std::lock_guard lock(found->mutex);
  found->captured = new CUgraph_st;
  begin_capture(&found->capture, mode);
  return state();
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Stream found = find(stream);
  if (found == nullptr) {
    return note(cudaErrorInvalidResourceHandle);
  }
  const std::lock_guard lock(found->mutex);
  *status =
      found->captured != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return state();
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Stream found = find(stream);
  const std::lock_guard lock(found->mutex);
  *graph = std::exchange(found->captured, nullptr);
  if (!end_capture(&found->capture)) {
    delete std::exchange(*graph, nullptr);
    return note(cudaErrorStreamCaptureInvalidated);
  }
  return state();
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec,
                                 cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  *exec = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const Work& node : exec->nodes) {
    if (const cudaError_t error = enqueue(stream, node); error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
}
