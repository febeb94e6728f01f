// The benchmarks for GPUs: names, help, and what they do by default, which is what bench/peers do.
#include "tools/perf/gpu/options.hpp"

namespace weft::perf::gpu {
namespace {

constexpr std::size_t kKilobyte = std::size_t{1} << 10U;
constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr SizeRange kOfBandwidth{kKilobyte, 128 * kMegabyte, 2};
constexpr SizeRange kOfLatency{8, 64 * kKilobyte, 2};
constexpr SizeRange kOfCollectives{128, 64 * kMegabyte, 2};
constexpr SizeRange kOfAlltoall{128, 256 * kMegabyte, 2};
constexpr SizeRange kOfReductions{8, 64 * kMegabyte, 2};
constexpr SizeRange kOneElement{8, 8, 2};
constexpr SizeRange kOneSignal{64, 64, 2};
constexpr std::uint32_t kCollectiveThreads = 512;

std::vector<Defaults> of_kernels() {
  using enum Benchmark;
  const std::vector<Scope> one{Scope::Thread};
  const std::vector<Scope> block{Scope::Block};
  const std::vector<Scope> three{Scope::Thread, Scope::Warp, Scope::Block};
  const std::vector<Scope> four{Scope::Thread, Scope::Warp, Scope::Block, Scope::Grid};
  const std::vector<Scope> wide{Scope::Block, Scope::Grid};
  constexpr Side kSide = Side::Device;
  constexpr std::uint32_t kThreads = 256;
  return {
      {kSide, PutBw, "shmem_put_bw", "Bandwidth of put_nbi to a peer", kOfBandwidth, kThreads,
       block, three},
      {kSide, GetBw, "shmem_get_bw", "Bandwidth of get_nbi from a peer", kOfBandwidth, kThreads,
       block, three},
      {kSide, PBw, "shmem_p_bw", "Bandwidth of p, an element by each thread", kOfBandwidth,
       kThreads, one, one},
      {kSide, PutLatency, "shmem_put_latency", "Time of a put and quiet", kOfLatency, kThreads,
       block, three},
      {kSide, GetLatency, "shmem_get_latency", "Time of a get", kOfLatency, kThreads, block, three},
      {kSide, PLatency, "shmem_p_latency", "Time of a p and quiet", kOneElement, 1, one, one},
      {kSide, GLatency, "shmem_g_latency", "Time of a g", kOneElement, 1, one, one},
      {kSide,
       PutPingPong,
       "put_ping_pong",
       "Round trip of put, fence, p",
       {8, 4 * kKilobyte, 2},
       kThreads,
       one,
       three},
      {kSide,
       PutSignalPingPong,
       "put_signal_ping_pong",
       "Round trip of put_signal",
       {16, 4 * kKilobyte, 16},
       kThreads,
       {Scope::Thread, Scope::Block},
       three},
      {kSide, SignalPingPong, "signal_ping_pong", "Round trip of signal", kOneElement, 1, one, one},
      {kSide, AtomicLatency, "atomic_latency", "Time of each atomic", kOneElement, 1, one, one},
      {kSide,
       AtomicBw,
       "atomic_bw",
       "Atomics by many threads, each on a word of its own",
       {kKilobyte, kMegabyte, 2},
       kThreads,
       one,
       one},
      {kSide, Alltoall, "alltoall", "alltoall of all PEs", kOfAlltoall, kCollectiveThreads, four,
       four},
      {kSide, Barrier, "barrier", "barrier of all PEs", kOneElement, kCollectiveThreads, four,
       four},
      {kSide, Sync, "sync", "sync of all PEs", kOneElement, kCollectiveThreads, four, four},
      {kSide, Bcast, "bcast", "broadcast from PE 0", kOfCollectives, kCollectiveThreads, wide,
       four},
      {kSide, Fcollect, "fcollect", "fcollect of all PEs", kOfCollectives, kCollectiveThreads, wide,
       four},
      {kSide, Reduction, "reduction", "reduce with -o and -d", kOfReductions, kCollectiveThreads,
       wide, four},
      {kSide, ReduceScatter, "reducescatter", "reduce_scatter with -o and -d", kOfCollectives,
       kCollectiveThreads, wide, four},
      {kSide, RingRate, "ring_rate", "Commands of PE 0 to its proxy", kOneElement, kThreads, one,
       one},
      {kSide, PutSignalRate, "put_signal_rate", "put_signals a second, each by a thread",
       kOneSignal, kThreads, one, one},
  };
}

std::vector<Defaults> of_streams() {
  using enum Benchmark;
  constexpr Side kSide = Side::Stream;
  return {
      {kSide, PutBw, "put", "weft_put_on_stream to a peer", kOfBandwidth, 0, {}, {}},
      {kSide, GetBw, "get", "weft_get_on_stream from a peer", kOfBandwidth, 0, {}, {}},
      {kSide,
       PutSignalPingPong,
       "put_signal_ping_pong",
       "weft_put_signal_on_stream and its answer",
       {16, 4 * kKilobyte, 16},
       0,
       {},
       {}},
      {kSide, Alltoall, "alltoall", "weft_team_alltoall_on_stream", kOfAlltoall, 0, {}, {}},
      {kSide, Barrier, "barrier", "weft_barrier_all_on_stream", kOneElement, 0, {}, {}},
      {kSide, Sync, "sync", "weft_team_sync_on_stream", kOneElement, 0, {}, {}},
      {kSide, Bcast, "bcast", "weft_team_broadcast_on_stream", kOfCollectives, 0, {}, {}},
      {kSide, Fcollect, "fcollect", "weft_team_fcollect_on_stream", kOfCollectives, 0, {}, {}},
      {kSide, Reduction, "reduction", "weft_team_reduce_on_stream", kOfReductions, 0, {}, {}},
      {kSide,
       ReduceScatter,
       "reducescatter",
       "weft_team_reduce_scatter_on_stream",
       kOfCollectives,
       0,
       {},
       {}},
  };
}

std::vector<Defaults> make_benchmarks() {
  std::vector<Defaults> all = of_kernels();
  for (Defaults& defaults : of_streams()) {
    all.push_back(std::move(defaults));
  }
  return all;
}

}  // namespace

std::span<const Defaults> benchmarks() {
  static const std::vector<Defaults> kAll = make_benchmarks();
  return kAll;
}

}  // namespace weft::perf::gpu
