// From a benchmark's name to its function.
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {
namespace {

void require_two(const Session& session) {
  if (session.pe_count() < 2) {
    throw JobError(session.options().name + " needs 2 PEs; start it with weft-run -n 2",
                   kStatusUsage);
  }
}

void run_for_two(Session& session) {
  require_two(session);
  switch (session.options().benchmark) {
    case Benchmark::PutBw:
    case Benchmark::GetBw:
    case Benchmark::PBw:
      return run_bandwidth(session);
    case Benchmark::PutLatency:
    case Benchmark::GetLatency:
      return run_put_get_latency(session);
    case Benchmark::PLatency:
    case Benchmark::GLatency:
      return run_small(session);
    case Benchmark::PutPingPong:
    case Benchmark::PutSignalPingPong:
    case Benchmark::SignalPingPong:
      return run_ping_pong(session);
    case Benchmark::AtomicLatency:
    case Benchmark::AtomicBw:
      return run_atomics(session);
    case Benchmark::Alltoall:
    case Benchmark::Barrier:
    case Benchmark::Sync:
    case Benchmark::Bcast:
    case Benchmark::Fcollect:
    case Benchmark::Reduction:
    case Benchmark::ReduceScatter:
      return;
  }
}

}  // namespace

void run_benchmark(Session& session) {
  run_for_two(session);
}

}  // namespace weft::perf::gpu
