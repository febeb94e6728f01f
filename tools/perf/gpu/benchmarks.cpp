// The benchmarks for GPUs, in the order of --help. What they do by default is what bench/peers do.
#include "tools/perf/gpu/benchmark.hpp"
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {
namespace {

constexpr std::size_t kKilobyte = std::size_t{1} << 10U;
constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr SizeRange kOfBandwidth{kKilobyte, 128 * kMegabyte, 2};
constexpr SizeRange kOfLatency{8, 64 * kKilobyte, 2};
constexpr SizeRange kOfPingPong{8, 4 * kKilobyte, 2};
constexpr SizeRange kOfSignals{16, 4 * kKilobyte, 16};
constexpr SizeRange kOfCollectives{128, 64 * kMegabyte, 2};
constexpr SizeRange kOfAlltoall{128, 256 * kMegabyte, 2};
constexpr SizeRange kOfReductions{8, 64 * kMegabyte, 2};
constexpr SizeRange kOfAtomics{kKilobyte, kMegabyte, 2};
constexpr SizeRange kOneElement{8, 8, 2};
constexpr SizeRange kOneSignal{64, 64, 2};
constexpr SizeRange kOfRows{64, 16 * kKilobyte, 4};
constexpr SizeRange kOnePage{16 * kKilobyte, 16 * kKilobyte, 2};

struct Text {
  std::string_view name;
  std::string_view help;
};

using Run = void (*)(Session& session);

// Between PE 0 and its partner.
Benchmark for_two(Kind kind, Text text, SizeRange sizes, Run run) {
  return {.kind = kind,
          .name = text.name,
          .help = text.help,
          .sizes = sizes,
          .threads = 256,
          .scopes = {Scope::Thread},
          .allowed = {Scope::Thread},
          .pe_count_min = 2,
          .run = run};
}

Benchmark in_scopes(Benchmark benchmark, std::vector<Scope> scopes) {
  benchmark.scopes = std::move(scopes);
  benchmark.allowed = {Scope::Thread, Scope::Warp, Scope::Block};
  return benchmark;
}

Benchmark with_threads(Benchmark benchmark, std::uint32_t threads) {
  benchmark.threads = threads;
  return benchmark;
}

Benchmark collective(Kind kind, Text text, SizeRange sizes, std::vector<Scope> scopes) {
  return {.kind = kind,
          .name = text.name,
          .help = text.help,
          .sizes = sizes,
          .threads = 512,
          .scopes = std::move(scopes),
          .allowed = {Scope::Thread, Scope::Warp, Scope::Block, Scope::Grid},
          .run = run_collective};
}

void add_kernels(std::vector<Benchmark>& all) {
  using enum Kind;
  const std::vector<Scope> block{Scope::Block};
  const std::vector<Scope> three{Scope::Thread, Scope::Warp, Scope::Block};
  const std::vector<Scope> four{Scope::Thread, Scope::Warp, Scope::Block, Scope::Grid};
  const std::vector<Scope> wide{Scope::Block, Scope::Grid};
  const auto add = [&](const Benchmark& benchmark) { all.push_back(benchmark); };
  add(in_scopes(for_two(PutBw, {"shmem_put_bw", "Bandwidth of put_nbi to a peer"}, kOfBandwidth,
                        run_bandwidth),
                block));
  add(in_scopes(for_two(GetBw, {"shmem_get_bw", "Bandwidth of get_nbi from a peer"}, kOfBandwidth,
                        run_bandwidth),
                block));
  add(for_two(PBw, {"shmem_p_bw", "Bandwidth of p, an element by each thread"}, kOfBandwidth,
              run_bandwidth));
  add(in_scopes(for_two(PutLatency, {"shmem_put_latency", "Time of a put and quiet"}, kOfLatency,
                        run_put_get_latency),
                block));
  add(in_scopes(
      for_two(GetLatency, {"shmem_get_latency", "Time of a get"}, kOfLatency, run_put_get_latency),
      block));
  add(with_threads(
      for_two(PLatency, {"shmem_p_latency", "Time of a p and quiet"}, kOneElement, run_small), 1));
  add(with_threads(for_two(GLatency, {"shmem_g_latency", "Time of a g"}, kOneElement, run_small),
                   1));
  add(in_scopes(for_two(PutPingPong, {"put_ping_pong", "Round trip of put, fence, p"}, kOfPingPong,
                        run_ping_pong),
                {Scope::Thread}));
  add(in_scopes(for_two(PutSignalPingPong, {"put_signal_ping_pong", "Round trip of put_signal"},
                        kOfSignals, run_ping_pong),
                {Scope::Thread, Scope::Block}));
  add(with_threads(for_two(SignalPingPong, {"signal_ping_pong", "Round trip of signal"},
                           kOneElement, run_ping_pong),
                   1));
  add(with_threads(for_two(TaggedPingPong,
                           {"tagged_ping_pong", "Round trip of put_tagged, data and flag in one"},
                           kOneElement, run_ping_pong),
                   1));
  add(with_threads(
      for_two(AtomicLatency, {"atomic_latency", "Time of each atomic"}, kOneElement, run_atomics),
      1));
  add(for_two(AtomicBw, {"atomic_bw", "Atomics by many threads, each on a word of its own"},
              kOfAtomics, run_atomics));
  add(collective(Alltoall, {"alltoall", "alltoall of all PEs"}, kOfAlltoall, four));
  add(collective(Barrier, {"barrier", "barrier of all PEs"}, kOneElement, four));
  add(collective(Sync, {"sync", "sync of all PEs"}, kOneElement, four));
  add(collective(SyncRelaxed, {"sync_relaxed", "sync of all PEs that orders nothing"}, kOneElement,
                 four));
  add(collective(Bcast, {"bcast", "broadcast from PE 0"}, kOfCollectives, wide));
  add(collective(Fcollect, {"fcollect", "fcollect of all PEs"}, kOfCollectives, wide));
  add(collective(Reduction, {"reduction", "reduce with -o and -d"}, kOfReductions, wide));
  add(collective(ReduceScatter, {"reducescatter", "reduce_scatter with -o and -d"}, kOfCollectives,
                 wide));
  Benchmark ring =
      for_two(RingRate, {"ring_rate", "Commands of PE 0 to its proxy"}, kOneElement, run_ring_rate);
  ring.pe_count_min = 1;
  add(ring);
  add(for_two(PutSignalRate, {"put_signal_rate", "put_signals a second, each by a thread"},
              kOneSignal, run_put_signal_rate));
  add(for_two(PutvRate, {"putv_rate", "Rows a second in lists of 64 by warps, and one by one"},
              kOfRows, run_putv_rate));
  add(for_two(PagedWrite, {"paged_write", "Pages in random order into PE 0's memory, over time"},
              kOnePage, run_paged_write));
}

void add_streams(std::vector<Benchmark>& all) {
  using enum Kind;
  const auto add = [&](Kind kind, Text text, SizeRange sizes, Run run, std::uint32_t pe_count_min) {
    all.push_back({.side = Side::Stream,
                   .kind = kind,
                   .name = text.name,
                   .help = text.help,
                   .sizes = sizes,
                   .pe_count_min = pe_count_min,
                   .run = run});
  };
  const auto add_collective = [&](Kind kind, Text text, SizeRange sizes) {
    add(kind, text, sizes, run_stream_collective, 1);
  };
  add(PutBw, {"put", "weft_put_on_stream to a peer"}, kOfBandwidth, run_stream_transfer, 2);
  add(GetBw, {"get", "weft_get_on_stream from a peer"}, kOfBandwidth, run_stream_transfer, 2);
  add(PutSignalPingPong, {"put_signal_ping_pong", "weft_put_signal_on_stream and its answer"},
      kOfSignals, run_stream_ping_pong, 2);
  add_collective(Alltoall, {"alltoall", "weft_team_alltoall_on_stream"}, kOfAlltoall);
  add_collective(Barrier, {"barrier", "weft_barrier_all_on_stream"}, kOneElement);
  add_collective(Sync, {"sync", "weft_team_sync_on_stream"}, kOneElement);
  add_collective(Bcast, {"bcast", "weft_team_broadcast_on_stream"}, kOfCollectives);
  add_collective(Fcollect, {"fcollect", "weft_team_fcollect_on_stream"}, kOfCollectives);
  add_collective(Reduction, {"reduction", "weft_team_reduce_on_stream"}, kOfReductions);
  add_collective(ReduceScatter, {"reducescatter", "weft_team_reduce_scatter_on_stream"},
                 kOfCollectives);
}

}  // namespace

std::span<const Benchmark> benchmarks() {
  static const std::vector<Benchmark> kAll = [] {
    std::vector<Benchmark> all;
    add_kernels(all);
    add_streams(all);
    return all;
  }();
  return kAll;
}

}  // namespace weft::perf::gpu
