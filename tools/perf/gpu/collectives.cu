// alltoall, barrier, sync, bcast, fcollect, reduction, reducescatter of kernels: all PEs, in each
// scope. Data is moved as bytes; types count for reductions alone.
#include "tools/perf/gpu/collective.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

inline __device__ std::byte* dest_of(const Buffers& buffers) {
  return static_cast<std::byte*>(buffers.dest);
}

inline const __device__ std::byte* source_of(const Buffers& buffers) {
  return static_cast<const std::byte*>(buffers.source);
}

// `count` is in bytes here.
struct CallAlltoall {
  template <typename Scope>
  static __device__ void call(const Buffers& buffers) {
    wd::alltoall<Scope>(wd::kWorld, dest_of(buffers), source_of(buffers), buffers.count);
  }
};

struct CallFcollect {
  template <typename Scope>
  static __device__ void call(const Buffers& buffers) {
    wd::fcollect<Scope>(wd::kWorld, dest_of(buffers), source_of(buffers), buffers.count);
  }
};

struct CallBroadcast {
  template <typename Scope>
  static __device__ void call(const Buffers& buffers) {
    wd::broadcast<Scope>(wd::kWorld, dest_of(buffers), source_of(buffers), buffers.count, 0);
  }
};

struct CallBarrier {
  template <typename Scope>
  static __device__ void call(const Buffers& /*buffers*/) {
    wd::barrier<Scope>(wd::kWorld);
  }
};

struct CallSync {
  template <typename Scope>
  static __device__ void call(const Buffers& /*buffers*/) {
    wd::sync<Scope>(wd::kWorld);
  }
};

struct CallSyncRelaxed {
  template <typename Scope>
  static __device__ void call(const Buffers& /*buffers*/) {
    wd::sync<Scope, wd::Order::None>(wd::kWorld);
  }
};

CollectiveKernels kernels_of(const CollectivePlan& plan, Kind kind) {
  const bool scatters = kind == Kind::ReduceScatter;
  switch (kind) {
    case Kind::Alltoall:
      return in_all_scopes<CallAlltoall>();
    case Kind::Fcollect:
      return in_all_scopes<CallFcollect>();
    case Kind::Bcast:
      return in_all_scopes<CallBroadcast>();
    case Kind::Barrier:
      return in_all_scopes<CallBarrier>();
    case Kind::Sync:
      return in_all_scopes<CallSync>();
    case Kind::SyncRelaxed:
      return in_all_scopes<CallSyncRelaxed>();
    case Kind::Reduction:
    case Kind::ReduceScatter:
    default:
      break;
  }
  if (plan.element == WEFT_FLOAT) {
    return reductions_float(plan.reduction, scatters);
  }
  if (plan.element == WEFT_DOUBLE) {
    return reductions_double(plan.reduction, scatters);
  }
  // The data has no sign, so that the unsigned kernels do.
  return plan.element_bytes == 4 ? reductions_uint32(plan.reduction, scatters)
                                 : reductions_uint64(plan.reduction, scatters);
}

Shape shape_of(const Options& options, Scope scope, CollectiveKernel kernel) {
  constexpr std::uint32_t kWarpThreads = 32;
  const auto* function = reinterpret_cast<const void*>(kernel);
  const std::uint32_t wanted = scope == Scope::Thread ? 1
                               : scope == Scope::Warp ? kWarpThreads
                                                      : options.threads;
  Shape shape{1, threads_for(function, wanted)};
  if (scope == Scope::Grid) {
    shape.ctas = ctas_for(function, {options.ctas, shape.threads});
  }
  return shape;
}

void run_size(Session& session,
              const CollectivePlan& plan,
              Scope scope,
              CollectiveKernel kernel,
              std::size_t size) {
  const Options& options = session.options();
  const std::size_t count = plan.moves_nothing ? 1 : plan.count_for(size, session.pe_count());
  if (count == 0) {
    return;  // less than an element for each PE: no row
  }
  const bool reduces = plan.pattern == Pattern::Reduce || plan.pattern == Pattern::ReduceScatter;
  const std::uint64_t iterations = iterations_for(options, size, budget_of(scope));
  Loop loop{
      static_cast<int>(iterations < options.warmup_iterations ? 2 : options.warmup_iterations),
      static_cast<int>(iterations)};
  Buffers buffers{session.dest(), session.source(), reduces ? count : count * plan.element_bytes};
  const Shape shape = shape_of(options, scope, kernel);
  prepare(session, plan, count);
  Span* spans = spans_of_process();
  void* arguments[] = {&buffers, &loop, &spans};
  launch_together(reinterpret_cast<const void*>(kernel), shape, arguments);
  Row row;
  row.latency_us = microseconds(shape.ctas, iterations);
  Session::barrier();
  row.layout = plan.moves_nothing ? Layout::Latency : Layout::Collective;
  row.title = plan.title;
  row.scope = name_of(scope);
  row.type = plan.moves_nothing ? "None" : plan.type;
  row.bytes = plan.row_bytes(count, session.pe_count());
  row.count = plan.moves_nothing ? 0 : count;
  row.bus_factor = plan.bus_factor;
  row.iterations = iterations;
  row.ctas = shape.ctas;
  row.threads = shape.threads;
  session.add(row, count_wrong(session, plan, count));
}

void run_scope(Session& session, const CollectivePlan& plan, Scope scope, CollectiveKernel kernel) {
  if (kernel == nullptr) {
    throw JobError(plan.title + " " + plan.type + " -s " + std::string(name_of(scope)) +
                       ": of kernels weft-perf has sums (of 32 bits in all scopes) and the maximum "
                       "of int32; weft-perf stream has all reductions",
                   kStatusUsage);
  }
  for (const std::size_t size : size_sequence(session.options().sizes)) {
    if (size <= largest_size(session.options(), scope)) {
      run_size(session, plan, scope, kernel, size);
    }
  }
}

}  // namespace

void run_collective(Session& session) {
  for (const weft_reduction reduction : reductions_of(session.options())) {
    const CollectivePlan plan = plan_of(session, reduction, "_device");
    const CollectiveKernels kernels = kernels_of(plan, session.options().kind);
    for (const Scope scope : session.options().scopes) {
      run_scope(session, plan, scope, kernels.in[static_cast<std::size_t>(scope)]);
    }
  }
}

}  // namespace weft::perf::gpu
