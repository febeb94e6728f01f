// weft-perf stream: what the host puts on a CUDA stream, call after call between two events; with
// --graph also replayed from a CUDA graph, so that the CPU's part is gone. A row has the shortest
// and the longest time of all PEs.
#include <weft/device.h>

#include <functional>

#include "tools/perf/gpu/collective_data.hpp"
#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {
namespace {

constexpr std::size_t kBudget = std::size_t{8} << 30U;
constexpr int kGraphNodes = 20;

struct Times {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;

  Times() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check(cudaEventCreate(&begin), "making an event");
    check(cudaEventCreate(&end), "making an event");
  }

  Times(const Times&) = delete;
  Times& operator=(const Times&) = delete;

  ~Times() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
  }

  // Microseconds on the stream from the first to the last of what `work` puts there. All PEs start
  // at once.
  template <typename Work>
  double of(const Work& work) const {
    float milliseconds = 0;
    Session::barrier();
    require(weft_barrier_all_on_stream(stream));
    check(cudaEventRecord(begin, stream), "recording an event");
    work();
    check(cudaEventRecord(end, stream), "recording an event");
    check(cudaEventSynchronize(end), "the measured calls");
    check(cudaEventElapsedTime(&milliseconds, begin, end), "reading two events");
    return static_cast<double>(milliseconds) * 1e3;
  }
};

// One call, or what one PE does of it.
using Call = std::function<void(cudaStream_t)>;

double time_stream(const Times& times,
                   const Call& call,
                   std::uint64_t warmup,
                   std::uint64_t count) {
  for (std::uint64_t i = 0; i < warmup; ++i) {
    call(times.stream);
  }
  return times.of([&] {
    for (std::uint64_t i = 0; i < count; ++i) {
      call(times.stream);
    }
  }) / static_cast<double>(count);
}

cudaGraphExec_t capture(const Times& times, const Call& call, int nodes) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(times.stream, cudaStreamCaptureModeThreadLocal),
        "capturing a stream");
  for (int i = 0; i < nodes; ++i) {
    call(times.stream);
  }
  check(cudaStreamEndCapture(times.stream, &graph), "capturing a stream");
  check(cudaGraphInstantiate(&executable, graph, 0), "making a graph");
  check(cudaGraphDestroy(graph), "freeing a graph");
  return executable;
}

double time_graph(const Times& times, const Call& call, std::uint64_t count) {
  const int nodes = static_cast<int>(std::min<std::uint64_t>(count, kGraphNodes));
  const auto launches = std::max<std::uint64_t>(1, count / static_cast<std::uint64_t>(nodes));
  cudaGraphExec_t executable = capture(times, call, nodes);
  check(cudaGraphLaunch(executable, times.stream), "launching a graph");
  const double all = times.of([&] {
    for (std::uint64_t i = 0; i < launches; ++i) {
      check(cudaGraphLaunch(executable, times.stream), "launching a graph");
    }
  });
  Session::barrier();
  check(cudaGraphExecDestroy(executable), "freeing a graph");
  return all / static_cast<double>(launches * static_cast<std::uint64_t>(nodes));
}

// A row by calls, and one by the graph if it is wanted. `prepare` is collective; `count_wrong`
// looks at what the last call left.
struct Measurement {
  Row row;
  Call call;
  std::function<void()> prepare;
  std::function<std::uint64_t()> count_wrong;
  bool takes_part = true;  // else the PE's time does not count
};

void measure(Session& session, const Times& times, Measurement measurement) {
  const Options& options = session.options();
  Row& row = measurement.row;
  row.has_spread = true;
  for (const bool is_graph : {false, true}) {
    if (is_graph && !options.uses_graph) {
      break;
    }
    measurement.prepare();
    const double us =
        is_graph ? time_graph(times, measurement.call, row.iterations)
                 : time_stream(times, measurement.call,
                               std::min(row.iterations, options.warmup_iterations), row.iterations);
    Session::barrier();
    row.scope = is_graph ? "graph" : "stream";
    row.latency_us = measurement.takes_part ? us : 0;
    session.add(row, measurement.count_wrong());
  }
}

// ---- Collectives

void call_collective(const Session& session,
                     const CollectivePlan& plan,
                     std::size_t count,
                     cudaStream_t stream) {
  const std::size_t bytes = count * plan.element_bytes;
  void* dest = session.dest();
  const void* source = session.source();
  const weft_elements elements{plan.element, count};
  switch (session.options().kind) {
    case Kind::Barrier:
      return require(weft_barrier_all_on_stream(stream));
    case Kind::Sync:
      return require(weft_team_sync_on_stream(WEFT_TEAM_WORLD, stream));
    case Kind::Alltoall:
      return require(weft_team_alltoall_on_stream(WEFT_TEAM_WORLD, dest, source, bytes, stream));
    case Kind::Bcast:
      return require(
          weft_team_broadcast_on_stream(WEFT_TEAM_WORLD, dest, source, bytes, 0, stream));
    case Kind::Fcollect:
      return require(weft_team_fcollect_on_stream(WEFT_TEAM_WORLD, dest, source, bytes, stream));
    case Kind::Reduction:
      return require(weft_team_reduce_on_stream(WEFT_TEAM_WORLD, dest, source, elements,
                                                plan.reduction, stream));
    default:
      return require(weft_team_reduce_scatter_on_stream(WEFT_TEAM_WORLD, dest, source, elements,
                                                        plan.reduction, stream));
  }
}

void run_collective_of_size(Session& session,
                            const Times& times,
                            const CollectivePlan& plan,
                            std::size_t size) {
  const std::size_t count = plan.moves_nothing ? 1 : plan.count_for(size, session.pe_count());
  if (count == 0) {
    return;  // less than an element for each PE: no row
  }
  Row row;
  row.layout = plan.moves_nothing ? Layout::Latency : Layout::Collective;
  row.title = plan.title;
  row.type = plan.moves_nothing ? "None" : plan.type;
  row.bytes = plan.row_bytes(count, session.pe_count());
  row.count = plan.moves_nothing ? 0 : count;
  row.bus_factor = plan.bus_factor;
  row.iterations = iterations_for(session.options(), size, kBudget);
  measure(
      session, times,
      {row, [&](cudaStream_t stream) { call_collective(session, plan, count, stream); },
       [&] { prepare(session, plan, count); }, [&] { return count_wrong(session, plan, count); }});
}

// ---- Between two PEs

std::uint64_t count_wrong_bytes(const Session& session, bool receives, std::size_t bytes) {
  if (!session.options().verifies || !receives) {
    return 0;
  }
  return count_wrong<std::uint8_t>(
      session.dest(), 1, bytes, {Pattern::One, session.me(), session.pe_count(), session.other()});
}

Row row_for_two(const Session& session, std::size_t size) {
  Row row;
  row.title = session.options().name + "_on_stream";
  row.bytes = row.count = size;
  row.iterations = iterations_for(session.options(), size, kBudget);
  return row;
}

// put or get of PE 0, or of both; one quiet on the stream behind each.
void run_transfer(Session& session, const Times& times, std::size_t size) {
  const bool is_get = session.options().kind == Kind::GetBw;
  const bool both = session.options().bidirectional;
  const bool acts = session.me() == 0 || (both && session.is_one_of_two());
  const bool receives = session.is_one_of_two() && (both || (session.me() == 0) == is_get);
  Row row = row_for_two(session, size);
  row.layout = Layout::Bandwidth;
  row.directions = both ? 2 : 1;
  const auto call = [&](cudaStream_t stream) {
    if (acts) {
      require(is_get ? weft_get_on_stream(session.dest(), session.source(), size, session.other(),
                                          stream)
                     : weft_put_on_stream(session.dest(), session.source(), size, session.other(),
                                          stream));
      require(weft_quiet_on_stream(stream));
    }
  };
  measure(session, times,
          {row, call, [&] { prepare_bytes(session, size); },
           [&] { return count_wrong_bytes(session, receives, size); }, acts});
}

// Each adds 1 to the other's word, and waits until its own is not 0, and takes the 1 away again: so
// a graph, whose arguments are always the same, can be replayed.
void run_answers(Session& session, const Times& times, std::size_t size) {
  std::uint64_t* word = session.words();
  const auto send = [&](cudaStream_t stream) {
    require(weft_put_signal_on_stream(session.dest(), session.source(), size,
                                      {word, 1, WEFT_SIGNAL_ADD}, session.other(), stream));
  };
  const auto receive = [&](cudaStream_t stream) {
    require(weft_signal_wait_until_on_stream(word, WEFT_NE, 0, stream));
    require(
        weft_signal_on_stream({word, ~std::uint64_t{0}, WEFT_SIGNAL_ADD}, session.me(), stream));
  };
  const auto call = [&](cudaStream_t stream) {
    if (session.me() == 0) {
      send(stream);
      receive(stream);
    } else if (session.is_one_of_two()) {
      receive(stream);
      send(stream);
    }
  };
  Row row = row_for_two(session, size);
  measure(session, times,
          {row, call, [&] { prepare_bytes(session, size); },
           [&] { return count_wrong_bytes(session, session.is_one_of_two(), size); },
           session.is_one_of_two()});
}

template <typename RunSize>
void run_sizes(Session& session, RunSize run_size) {
  const Times times;
  for (const std::size_t size : size_sequence(session.options().sizes)) {
    run_size(session, times, size);
  }
}

}  // namespace

void run_stream_transfer(Session& session) {
  run_sizes(session, run_transfer);
}

void run_stream_ping_pong(Session& session) {
  run_sizes(session, run_answers);
}

void run_stream_collective(Session& session) {
  const Times times;
  for (const weft_reduction reduction : reductions_of(session.options())) {
    const CollectivePlan plan = plan_of(session, reduction, "_on_stream");
    for (const std::size_t size : size_sequence(session.options().sizes)) {
      run_collective_of_size(session, times, plan, size);
    }
  }
}

}  // namespace weft::perf::gpu
