// What the parts of the emulated GPU share: its sizes, the calling thread's GPU, and which memory
// belongs to whom.
//
// Threads: any.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace weft_emulated {

// The machine: EMULATED_GPU_COUNT (8) GPUs of EMULATED_GPU_SMS (4) multiprocessors.
struct Machine {
  int gpus;
  int processors;
};

const Machine& machine();

inline constexpr int kThreadsOfProcessor = 2048;
inline constexpr int kBlocksOfProcessor = 8;
inline constexpr std::size_t kMemoryOfGpu = std::size_t{16} << 30U;

// Blocks that a multiprocessor holds at once.
int residency(int threads, std::size_t shared_bytes);

// EMULATED_GPU_ADMITS_NICS is set.
[[nodiscard]] bool admits_nics();

extern thread_local int current_gpu;

// Whether this thread has a context; every call of the runtime gives it one.
extern thread_local CUcontext current_context;

void enter();

// ---- Memory

enum class MemoryKind { Device, Host, Managed };

struct Range {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  MemoryKind kind{};
  int gpu = 0;
  std::uint64_t id = 0;
};

// The allocation or mapping around an address.
std::optional<Range> range_of(const void* address);

void add_range(Range range);
void remove_range(const void* begin);

// ---- Streams

// Adds work to a stream, or to the graph that is captured there.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// After a kernel that has failed: the GPU is lost to this process.
bool is_lost();

}  // namespace weft_emulated
