// One PE of an NVSHMEM job and what every benchmark there needs: buffers, time, and agreement with
// the other PEs. Host thread only; collective functions are called by all PEs in the same order.
// Written from NVSHMEM's public documentation alone.
#pragma once

#include <nvshmem.h>
#include <nvshmemx.h>

#include "pattern.cuh"
#include "peers.cuh"

namespace peers {
constexpr size_t kBufferBytes = size_t{256} << 20;
constexpr int kCtasMax = 1024;

struct Span {
  unsigned long long begin, end;  // of %globaltimer, in ns
};

struct Loop {
  int warm_up, iterations;
};

struct Shape {
  int ctas, threads;
};

__device__ inline unsigned long long now_ns() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
}

// Called by all threads of a CTA: what they did before is inside the span, what follows is not.
__device__ inline void begin_span(Span* spans) {
  __syncthreads();
  if (threadIdx.x == 0) {
    spans[blockIdx.x].begin = now_ns();
  }
  __syncthreads();
}

__device__ inline void end_span(Span* spans) {
  __syncthreads();
  if (threadIdx.x == 0) {
    spans[blockIdx.x].end = now_ns();
  }
}

class Session {
 public:
  Session(const Place& place, const Options& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  void close();  // collective

  // Runs on all PEs, whose kernels may wait for each other.
  void launch_collective(const void* kernel, Shape shape, void** arguments);
  // The shape's threads, or what this kernel's registers allow.
  static int threads_for(const void* kernel, int wanted);
  void barrier();  // of the host threads; collective
  // From the first CTA's begin to the last one's end, a iteration; after the kernel has ended.
  double microseconds(int ctas, int iterations) const;
  void clear_destination(size_t bytes);
  // Collective: the longest of the PEs' times goes into the row, and one PE's wrong data is all's.
  void add(Layout layout, Row row, unsigned errors);

  template <class T>
  T* source() const {
    return static_cast<T*>(source_);
  }

  template <class T>
  T* destination() const {
    return static_cast<T*>(destination_);
  }

  Place place;
  Options options;
  Report report;
  Span* spans = nullptr;                // kCtasMax of them, in GPU memory
  unsigned* errors = nullptr;           // a word of GPU memory
  unsigned long long* words = nullptr;  // kWordCount symmetric words, zero at first
  unsigned long long sequence = 0;      // the last value that ping-pongs have put into words[0]

  static constexpr int kWordCount = 16;

 private:
  void* source_ = nullptr;
  void* destination_ = nullptr;
  double* agreement_ = nullptr;  // symmetric: 2 values in, 2 out
  cudaStream_t stream_ = nullptr;
};

void run_collectives(Session& session);
void run_on_stream(Session& session);
void run_bandwidth(Session& session);
void run_latency(Session& session);
void run_ping_pong(Session& session);
}  // namespace peers
