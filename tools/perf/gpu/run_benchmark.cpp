// From a benchmark's name to its function.
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {

void require_two(const Session& session) {
  if (session.pe_count() < 2) {
    throw JobError(session.options().name + " needs 2 PEs; start it with weft-run -n 2",
                   kStatusUsage);
  }
}

namespace {

void run_for_two(Session& session, void (*benchmark)(Session&)) {
  require_two(session);
  benchmark(session);
}

void run_kernels(Session& session) {
  switch (session.options().benchmark) {
    case Benchmark::PutBw:
    case Benchmark::GetBw:
    case Benchmark::PBw:
      return run_for_two(session, run_bandwidth);
    case Benchmark::PutLatency:
    case Benchmark::GetLatency:
      return run_for_two(session, run_put_get_latency);
    case Benchmark::PLatency:
    case Benchmark::GLatency:
      return run_for_two(session, run_small);
    case Benchmark::PutPingPong:
    case Benchmark::PutSignalPingPong:
    case Benchmark::SignalPingPong:
      return run_for_two(session, run_ping_pong);
    case Benchmark::AtomicLatency:
    case Benchmark::AtomicBw:
      return run_for_two(session, run_atomics);
    case Benchmark::Alltoall:
    case Benchmark::Barrier:
    case Benchmark::Sync:
    case Benchmark::Bcast:
    case Benchmark::Fcollect:
    case Benchmark::Reduction:
    case Benchmark::ReduceScatter:
      return run_collective(session);
    case Benchmark::RingRate:
      return run_ring_rate(session);
    case Benchmark::PutSignalRate:
      return run_for_two(session, run_put_signal_rate);
  }
}

}  // namespace

void run_benchmark(Session& session) {
  if (session.options().side == Side::Stream) {
    run_stream(session);
  } else {
    run_kernels(session);
  }
}

}  // namespace weft::perf::gpu
