// shmem_put_latency, shmem_get_latency: a put and quiet, or a get, again and again, by PE 0 or by
// both of a pair. In a file of its own: functions of the device API that are not inlined are
// compiled once for all kernels of a file, with the registers of the one that has the fewest.
#include "tools/perf/gpu/memory.cuh"
#include "tools/perf/gpu/transfer.cuh"

namespace weft::perf::gpu {
namespace {

namespace wd = weft::device;

constexpr std::size_t kBudgetOfThread = std::size_t{32} << 20U;

template <typename Scope, bool kGet>
__global__ void __launch_bounds__(kTimedThreadsMax, 1)
    move_alone(Transfer transfer, Loop loop, Span* spans) {
  for (int i = -loop.warmup; i < loop.iterations; ++i) {
    if (i == 0) {
      begin_span(spans);
    }
    if constexpr (kGet) {
      wd::get<Scope>(transfer.dest, transfer.source, transfer.bytes, transfer.peer);
    } else {
      wd::put<Scope>(transfer.dest, transfer.source, transfer.bytes, transfer.peer);
      if (threadIdx.x == 0) {
        wd::quiet();
      }
      Scope::sync();
    }
  }
  end_span(spans);
}

using MoveAlone = void (*)(Transfer, Loop, Span*);

template <bool kGet>
MoveAlone alone_in(Scope scope) {
  return scope == Scope::Thread ? &move_alone<wd::Thread, kGet>
         : scope == Scope::Warp ? &move_alone<wd::Warp, kGet>
                                : &move_alone<wd::Block, kGet>;
}

std::uint32_t threads_in(Scope scope, std::uint32_t threads) {
  constexpr std::uint32_t kWarpThreads = 32;
  return scope == Scope::Thread ? 1 : scope == Scope::Warp ? kWarpThreads : threads;
}

template <bool kGet>
void latency(Session& session, Scope scope) {
  const Options& options = session.options();
  const MoveAlone kernel = alone_in<kGet>(scope);
  const Shape shape{
      1, threads_for(reinterpret_cast<const void*>(kernel), threads_in(scope, options.threads))};
  for (const std::size_t size : size_sequence(options.sizes)) {
    if (size > largest_size(options, scope)) {
      break;
    }
    const std::uint64_t iterations =
        iterations_for(options, size, scope == Scope::Block ? kTransferBudget : kBudgetOfThread);
    const Loop loop{static_cast<int>(std::min(iterations, options.warmup_iterations)),
                    static_cast<int>(iterations)};
    prepare_bytes(session, size);
    Row row = row_of(session, size, shape, iterations);
    if (takes_part(session)) {
      kernel<<<1, shape.threads>>>(transfer_of(session, size), loop, spans_of_process());
      check_launch();
      row.latency_us = microseconds(1, iterations);
    }
    Session::barrier();
    row.title = kGet ? "shmem_get_latency" : "shmem_put_latency";
    row.scope = name_of(scope);
    session.add(row, wrong_bytes(session, kGet, size));
  }
}

}  // namespace

void run_put_get_latency(Session& session) {
  for (const Scope scope : session.options().scopes) {
    if (session.options().kind == Kind::GetLatency) {
      latency<true>(session, scope);
    } else {
      latency<false>(session, scope);
    }
  }
}

}  // namespace weft::perf::gpu
