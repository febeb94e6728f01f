// NVSHMEM's device collectives: one CTA on each PE calls one of them in a loop inside one kernel.
// Every PE's time is taken, and the longest is the row's.
#include "nvshmem_session.cuh"

namespace peers {
namespace {
constexpr int kThreadsMax = 512;  // leaves 128 registers a thread to the library's inlined code
constexpr size_t kBlockBudget = size_t{256} << 20;

enum class Scope { Thread, Warp, Block };

template <class T>
struct Buffers {
  T* destination;
  const T* source;
  size_t count;
};

template <Scope kScope>
struct AllToAll {
  Buffers<int32_t> buffers;

  __device__ void operator()() const {
    const auto [destination, source, count] = buffers;
    if constexpr (kScope == Scope::Thread) {
      nvshmem_int32_alltoall(NVSHMEM_TEAM_WORLD, destination, source, count);
    } else if constexpr (kScope == Scope::Warp) {
      nvshmemx_int32_alltoall_warp(NVSHMEM_TEAM_WORLD, destination, source, count);
    } else {
      nvshmemx_int32_alltoall_block(NVSHMEM_TEAM_WORLD, destination, source, count);
    }
  }
};

template <Scope kScope>
struct Barrier {
  __device__ void operator()() const {
    if constexpr (kScope == Scope::Thread) {
      nvshmem_barrier_all();
    } else if constexpr (kScope == Scope::Warp) {
      nvshmemx_barrier_all_warp();
    } else {
      nvshmemx_barrier_all_block();
    }
  }
};

template <Scope kScope>
struct Sync {
  __device__ void operator()() const {
    if constexpr (kScope == Scope::Thread) {
      nvshmem_sync_all();
    } else if constexpr (kScope == Scope::Warp) {
      nvshmemx_sync_all_warp();
    } else {
      nvshmemx_sync_all_block();
    }
  }
};

struct FCollect {
  Buffers<int32_t> buffers;

  __device__ void operator()() const {
    nvshmemx_int32_fcollect_block(NVSHMEM_TEAM_WORLD, buffers.destination, buffers.source,
                                  buffers.count);
  }
};

struct Broadcast {
  Buffers<int32_t> buffers;

  __device__ void operator()() const {
    nvshmemx_int32_broadcast_block(NVSHMEM_TEAM_WORLD, buffers.destination, buffers.source,
                                   buffers.count, 0);
  }
};

struct IntSum {
  Buffers<int> buffers;

  __device__ void operator()() const {
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, buffers.destination, buffers.source,
                                  buffers.count);
  }
};

struct FloatSum {
  Buffers<float> buffers;

  __device__ void operator()() const {
    nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, buffers.destination, buffers.source,
                                    buffers.count);
  }
};

struct IntSumScatter {
  Buffers<int> buffers;

  __device__ void operator()() const {
    nvshmemx_int_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, buffers.destination, buffers.source,
                                         buffers.count);
  }
};

template <class Operation>
__global__ void __launch_bounds__(kThreadsMax)
    time_collective(Operation operation, Loop loop, Span* spans) {
  for (int i = 0; i < loop.warm_up; ++i) {
    operation();
  }
  nvshmemx_barrier_all_block();
  begin_span(spans);
  for (int i = 0; i < loop.iterations; ++i) {
    operation();
  }
  end_span(spans);
}

// What a benchmark's rows have in common.
struct Bench {
  const char* title;
  const char* scope;
  const char* type;
  double bus_factor;
  int threads;
};

template <class Operation>
Row run_one(Session& session, Operation operation, const Bench& bench, Loop loop) {
  Span* spans = session.spans;
  const auto kernel = reinterpret_cast<const void*>(&time_collective<Operation>);
  const Shape shape{1, Session::threads_for(kernel, bench.threads)};
  void* arguments[] = {&operation, &loop, &spans};
  session.launch_collective(kernel, shape, arguments);
  Row row;
  row.bench = bench.title;
  row.scope = bench.scope;
  row.type = bench.type;
  row.latency_us = session.microseconds(1, loop.iterations);
  row.bus_factor = bench.bus_factor;
  row.iterations = loop.iterations;
  row.threads = shape.threads;
  return row;
}

// How the buffers of a collective are cut: blocks of the source and of the destination.
struct Data {
  Pattern pattern;
  bool source_has_blocks, destination_has_blocks;
  Range sizes;
  size_t budget = kBlockBudget;
};

// The destination that is left from the loop is compared; the broadcast's root may leave its own
// alone.
template <class T>
unsigned verify(const Session& session, const Data& data, size_t count) {
  if (data.pattern == Pattern::One && session.place.rank == 0) {
    return 0;
  }
  const size_t blocks = data.destination_has_blocks ? session.place.count : 1;
  const Expected expected{data.pattern, session.place.rank, session.place.count};
  return count_errors(session.destination<T>(), blocks, count, expected, session.errors);
}

template <class Operation, class T>
void sweep(Session& session, const Bench& bench, const Data& data) {
  const size_t pes = static_cast<size_t>(session.place.count);
  const bool has_blocks = data.source_has_blocks || data.destination_has_blocks;
  const size_t blocks = has_blocks ? pes : 1;
  for (const size_t size : sizes_of(session.options, data.sizes, kBufferBytes)) {
    const size_t count = size / sizeof(T) / blocks;
    if (count == 0) {
      continue;
    }
    const int iterations = iterations_of(session.options, size, data.budget);
    fill(session.source<T>(), data.source_has_blocks ? pes : 1, count, session.place.rank);
    session.clear_destination(size);
    const Operation operation{{session.destination<T>(), session.source<T>(), count}};
    const Loop loop{iterations < session.options.warm_up ? 2 : session.options.warm_up, iterations};
    Row row = run_one(session, operation, bench, loop);
    row.bytes = count * sizeof(T) * blocks;
    row.count = count;
    session.add(Layout::Collective, row, verify<T>(session, data, count));
  }
}

template <template <Scope> class Operation>
void run_synchronization(Session& session, const char* title) {
  const Loop loop{session.options.warm_up, session.options.iterations};
  const int threads = session.options.threads != 0 ? session.options.threads : kThreadsMax;
  if (session.options.wants_scope("thread")) {
    const Row row =
        run_one(session, Operation<Scope::Thread>{}, {title, "thread", "None", 0, 1}, loop);
    session.add(Layout::Latency, row, 0);
  }
  if (session.options.wants_scope("warp")) {
    const Row row =
        run_one(session, Operation<Scope::Warp>{}, {title, "warp", "None", 0, 32}, loop);
    session.add(Layout::Latency, row, 0);
  }
  if (session.options.wants_scope("block")) {
    const Row row =
        run_one(session, Operation<Scope::Block>{}, {title, "block", "None", 0, threads}, loop);
    session.add(Layout::Latency, row, 0);
  }
}

// Few threads are slow at 256 MiB, so small scopes end early unless -e says otherwise.
void run_alltoall(Session& session, double bus_factor, int threads) {
  const char* title = "alltoall_device";
  const auto data = [](size_t max, size_t budget) {
    return Data{Pattern::Exchange, true, true, {128, max}, budget};
  };
  if (session.options.wants_scope("thread")) {
    sweep<AllToAll<Scope::Thread>, int32_t>(session, {title, "thread", "32-bit", bus_factor, 1},
                                            data(size_t{1} << 20, size_t{2} << 20));
  }
  if (session.options.wants_scope("warp")) {
    sweep<AllToAll<Scope::Warp>, int32_t>(session, {title, "warp", "32-bit", bus_factor, 32},
                                          data(size_t{16} << 20, size_t{32} << 20));
  }
  if (session.options.wants_scope("block")) {
    sweep<AllToAll<Scope::Block>, int32_t>(session, {title, "block", "32-bit", bus_factor, threads},
                                           data(kBufferBytes, kBlockBudget));
  }
}

void run_reductions(Session& session, double bus_factor, int threads) {
  const Range sizes{8, size_t{64} << 20};
  const Data whole{Pattern::Sum, false, false, sizes};
  if (session.options.wants("reduction") && session.options.wants_type("int")) {
    sweep<IntSum, int>(session, {"reduction_device", "block", "int-sum", 2 * bus_factor, threads},
                       whole);
  }
  if (session.options.wants("reduction") && session.options.wants_type("float")) {
    sweep<FloatSum, float>(
        session, {"reduction_device", "block", "float-sum", 2 * bus_factor, threads}, whole);
  }
  if (session.options.wants("reducescatter")) {
    sweep<IntSumScatter, int>(session,
                              {"reducescatter_device", "block", "int-sum", bus_factor, threads},
                              {Pattern::SumScatter, true, false, {128, sizes.max}});
  }
}
}  // namespace

void run_collectives(Session& session) {
  const Options& options = session.options;
  const double bus_factor = (session.place.count - 1.0) / session.place.count;
  const int threads = options.threads != 0 ? options.threads : kThreadsMax;
  const Range sizes{128, size_t{64} << 20};
  if (options.wants("barrier")) {
    run_synchronization<Barrier>(session, "barrier_device");
  }
  if (options.wants("sync")) {
    run_synchronization<Sync>(session, "sync_device");
  }
  if (options.wants("alltoall")) {
    run_alltoall(session, bus_factor, threads);
  }
  if (!options.wants_scope("block")) {
    return;
  }
  if (options.wants("fcollect")) {
    sweep<FCollect, int32_t>(session, {"fcollect_device", "block", "32-bit", bus_factor, threads},
                             {Pattern::Gather, false, true, sizes});
  }
  if (options.wants("broadcast")) {
    sweep<Broadcast, int32_t>(session, {"broadcast_device", "block", "32-bit", 1, threads},
                              {Pattern::One, false, false, sizes});
  }
  run_reductions(session, bus_factor, threads);
}
}  // namespace peers
