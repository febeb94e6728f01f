// NVSHMEM's functions on streams, call after call between two events ("stream"), and the same calls
// captured in a CUDA graph ("graph"), as tools/perf/gpu/stream.cu measures Weft's. The longest of
// the PEs' times is the row's.
#include <algorithm>
#include <functional>

#include "nvshmem_session.cuh"

namespace peers {
namespace {
constexpr size_t kBudget = size_t{8} << 30;
constexpr int kGraphNodes = 20;
constexpr int kIterations = 200;

class Clock {
 public:
  Clock() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }

  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  ~Clock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }

  cudaStream_t stream() const { return stream_; }

  // Microseconds on the stream of what `work` puts there; all PEs start at once.
  template <class Work>
  double microseconds(Session& session, const Work& work) const {
    float milliseconds = 0;
    session.barrier();
    nvshmemx_barrier_all_on_stream(stream_);
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    work();
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "the measured calls");
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

using Call = std::function<void(cudaStream_t)>;

double time_stream(Session& session, const Clock& clock, const Call& call, int iterations) {
  for (int i = 0; i < std::min(iterations, session.options.warm_up); ++i) {
    call(clock.stream());
  }
  return clock.microseconds(session, [&] {
    for (int i = 0; i < iterations; ++i) {
      call(clock.stream());
    }
  }) / iterations;
}

double time_graph(Session& session, const Clock& clock, const Call& call, int iterations) {
  const int nodes = std::min(iterations, kGraphNodes);
  const int launches = std::max(1, iterations / nodes);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(clock.stream(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  for (int i = 0; i < nodes; ++i) {
    call(clock.stream());
  }
  check(cudaStreamEndCapture(clock.stream(), &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(cudaGraphLaunch(executable, clock.stream()), "cudaGraphLaunch");
  const double all = clock.microseconds(session, [&] {
    for (int i = 0; i < launches; ++i) {
      check(cudaGraphLaunch(executable, clock.stream()), "cudaGraphLaunch");
    }
  });
  session.barrier();
  check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  return all / (launches * nodes);
}

struct Bench {
  const char* title;
  const char* type;
  double bus_factor;
  Pattern pattern;
  bool source_has_blocks, destination_has_blocks;
};

template <class T>
struct Buffers {
  T* destination;
  const T* source;
  size_t count;
};

template <class T>
unsigned count_wrong(const Session& session, const Bench& bench, size_t count) {
  if (bench.pattern == Pattern::One && session.place.rank == 0) {
    return 0;  // the root may leave its own destination alone
  }
  const size_t blocks = bench.destination_has_blocks ? session.place.count : 1;
  const Expected expected{bench.pattern, session.place.rank, session.place.count};
  return count_errors(session.destination<T>(), blocks, count, expected, session.errors);
}

template <class T>
void sweep(Session& session,
           const Clock& clock,
           const Bench& bench,
           const std::function<void(const Buffers<T>&, cudaStream_t)>& function) {
  const size_t pes = static_cast<size_t>(session.place.count);
  const size_t blocks = bench.source_has_blocks || bench.destination_has_blocks ? pes : 1;
  for (const size_t size : sizes_of(session.options, {128, size_t{32} << 20}, kBufferBytes)) {
    const size_t count = size / sizeof(T) / blocks;
    const int iterations = std::min(kIterations, iterations_of(session.options, size, kBudget));
    const Buffers<T> buffers{session.destination<T>(), session.source<T>(), count};
    const Call call = [&](cudaStream_t stream) { function(buffers, stream); };
    for (const bool is_graph : {false, true}) {
      Row row;
      row.scope = is_graph ? "graph" : "stream";
      if (count == 0 || !session.options.wants_scope(row.scope)) {
        continue;
      }
      fill(session.source<T>(), bench.source_has_blocks ? pes : 1, count, session.place.rank);
      session.clear_destination(size);
      row.bench = bench.title;
      row.type = bench.type;
      row.bus_factor = bench.bus_factor;
      row.bytes = count * sizeof(T) * blocks;
      row.count = count;
      row.iterations = iterations;
      row.ctas = row.threads = 0;  // NVSHMEM chooses
      row.latency_us = is_graph ? time_graph(session, clock, call, iterations)
                                : time_stream(session, clock, call, iterations);
      session.barrier();
      session.add(Layout::Collective, row, count_wrong<T>(session, bench, count));
    }
  }
}

void run_synchronization(Session& session,
                         const Clock& clock,
                         const char* title,
                         const Call& call) {
  for (const bool is_graph : {false, true}) {
    Row row;
    row.scope = is_graph ? "graph" : "stream";
    if (!session.options.wants_scope(row.scope)) {
      continue;
    }
    row.bench = title;
    row.type = "None";
    row.iterations = kIterations;
    row.ctas = row.threads = 0;
    row.latency_us = is_graph ? time_graph(session, clock, call, kIterations)
                              : time_stream(session, clock, call, kIterations);
    session.barrier();
    session.add(Layout::Latency, row, 0);
  }
}

void run_data(Session& session, const Clock& clock) {
  const double share = (session.place.count - 1.0) / session.place.count;
  if (session.options.wants("alltoall")) {
    sweep<int32_t>(session, clock,
                   {"alltoall_on_stream", "32-bit", share, Pattern::Exchange, true, true},
                   [](const Buffers<int32_t>& b, cudaStream_t stream) {
                     nvshmemx_int32_alltoall_on_stream(NVSHMEM_TEAM_WORLD, b.destination, b.source,
                                                       b.count, stream);
                   });
  }
  if (session.options.wants("fcollect")) {
    sweep<int32_t>(session, clock,
                   {"fcollect_on_stream", "32-bit", share, Pattern::Gather, false, true},
                   [](const Buffers<int32_t>& b, cudaStream_t stream) {
                     nvshmemx_int32_fcollect_on_stream(NVSHMEM_TEAM_WORLD, b.destination, b.source,
                                                       b.count, stream);
                   });
  }
  if (session.options.wants("broadcast")) {
    sweep<int32_t>(session, clock, {"broadcast_on_stream", "32-bit", 1, Pattern::One, false, false},
                   [](const Buffers<int32_t>& b, cudaStream_t stream) {
                     nvshmemx_int32_broadcast_on_stream(NVSHMEM_TEAM_WORLD, b.destination, b.source,
                                                        b.count, 0, stream);
                   });
  }
  if (session.options.wants("reduction") && session.options.wants_type("float")) {
    sweep<float>(session, clock,
                 {"reduction_on_stream", "float-sum", 2 * share, Pattern::Sum, false, false},
                 [](const Buffers<float>& b, cudaStream_t stream) {
                   nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, b.destination, b.source,
                                                       b.count, stream);
                 });
  }
}
}  // namespace

void run_on_stream(Session& session) {
  const Clock clock;
  if (session.options.wants("barrier")) {
    run_synchronization(session, clock, "barrier_on_stream",
                        [](cudaStream_t stream) { nvshmemx_barrier_all_on_stream(stream); });
  }
  if (session.options.wants("sync")) {
    run_synchronization(session, clock, "sync_on_stream",
                        [](cudaStream_t stream) { nvshmemx_sync_all_on_stream(stream); });
  }
  run_data(session, clock);
}
}  // namespace peers
