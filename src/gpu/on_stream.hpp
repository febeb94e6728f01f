// The work that libweft enqueues on a CUDA stream: kernels based on <weft/device.cuh>, and copies
// by the copy engines. Launchers only: the callers have checked the arguments.
//
// All can be captured in a CUDA graph: no function here allocates or waits, and call counters are
// in GPU memory.
//
// Threads: any. Each function returns CUDA's error as a number, 0 if the work is on the stream.
#pragma once

#include <weft/device.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::gpu::on_stream {

// CUDA's error text for a launcher's result.
[[nodiscard]] std::string words_of(int error);

// Loads all kernels of this folder. Otherwise CUDA loads a kernel at its first launch, which may
// wait for running kernels. Those may wait for the PE whose kernel is not loaded: a deadlock.
// Throws Error.
void preload_kernels();

struct StreamTransfer {
  void* dest = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
  int pe = 0;
  // The local mapping of the peer's side; null if only commands reach it.
  void* mapped = nullptr;
};

[[nodiscard]] int put(const StreamTransfer& transfer, weft_stream_t stream);
[[nodiscard]] int get(const StreamTransfer& transfer, weft_stream_t stream);
[[nodiscard]] int put_signal(const StreamTransfer& transfer,
                             const weft_signal& signal,
                             weft_stream_t stream);

// A list of segments to one PE, which is read before the call returns.
struct StreamList {
  const weft_segment* segments = nullptr;
  std::size_t count = 0;
  std::size_t bytes = 0;  // of all
  int pe = 0;
  bool is_mapped = false;
};

// `signal` is null, or follows all segments.
[[nodiscard]] int putv(const StreamList& list, const weft_signal* signal, weft_stream_t stream);
[[nodiscard]] int signal(const weft_signal& signal, int pe, weft_stream_t stream);
[[nodiscard]] int wait_until(const std::uint64_t* word,
                             weft_comparison comparison,
                             std::uint64_t value,
                             weft_stream_t stream);
[[nodiscard]] int quiet(weft_stream_t stream);

// ---- Collectives; `number` is the team's number in kernels.

struct StreamCollective {
  int number = 0;
  std::uint32_t size = 1;  // of the team
  void* dest = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;  // of one block
};

[[nodiscard]] int barrier_all(weft_stream_t stream);
[[nodiscard]] int sync(int number, weft_stream_t stream);
[[nodiscard]] int alltoall(const StreamCollective& call, weft_stream_t stream);
[[nodiscard]] int broadcast(const StreamCollective& call, int root, weft_stream_t stream);
[[nodiscard]] int fcollect(const StreamCollective& call, weft_stream_t stream);

struct ReduceOptions {
  weft_type type = WEFT_INT32;
  weft_reduction reduction = WEFT_SUM;
  bool scatters = false;
  bool is_mapped = false;  // every member's memory is reached by loads and stores
};

// Integers of 4 and 8 bytes, float and double; and, or and xor for integers only.
[[nodiscard]] bool can_reduce(weft_type type, weft_reduction reduction);
[[nodiscard]] int reduce(const StreamCollective& call,
                         const ReduceOptions& options,
                         weft_stream_t stream);

}  // namespace weft::gpu::on_stream
