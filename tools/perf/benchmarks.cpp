// The benchmarks of the host, in the order of --help.
#include <array>

#include "tools/perf/benchmark.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t kKilobyte = std::size_t{1} << 10U;
constexpr std::size_t kMegabyte = std::size_t{1} << 20U;

constexpr Defaults kOfBandwidth{
    .sizes = {8, 4 * kMegabyte}, .iterations = 200, .warmup_iterations = 20, .window = 64};
constexpr Defaults kOfLatency{
    .sizes = {8, 64 * kKilobyte}, .iterations = 1000, .warmup_iterations = 100};
constexpr Defaults kOfWord{.sizes = {8, 8}, .iterations = 1000, .warmup_iterations = 100};
constexpr Defaults kOfExchange{.sizes = {8, 64 * kKilobyte},
                               .iterations = 200,
                               .warmup_iterations = 20,
                               .window = 16,
                               .pattern = Pattern::AllOthers};
constexpr Defaults kOfCollectives{.sizes = {16, kMegabyte}};

constexpr Defaults reading(Defaults defaults) {
  defaults.reads = true;
  return defaults;
}

constexpr Defaults in_pairs(Defaults defaults) {
  defaults.pattern = Pattern::Pairs;
  return defaults;
}

template <Collective kWhich>
constexpr Benchmark collective(std::string_view name, std::string_view help) {
  return {.name = name,
          .help = help,
          .pe_count_min = 1,
          .defaults = kOfCollectives,
          .run = [](const Run& run) { run_collective(run, kWhich); }};
}

constexpr std::array kBenchmarks{
    Benchmark{.name = "put_bw",
              .help = "Bandwidth of puts from one PE to another",
              .defaults = kOfBandwidth,
              .run = run_bandwidth},
    Benchmark{.name = "get_bw",
              .help = "Bandwidth of gets by one PE from another",
              .defaults = reading(kOfBandwidth),
              .run = run_bandwidth},
    Benchmark{.name = "put_latency",
              .help = "Time of one put and quiet",
              .defaults = kOfLatency,
              .run = run_latency},
    Benchmark{.name = "get_latency",
              .help = "Time of one get",
              .defaults = reading(kOfLatency),
              .run = run_latency},
    Benchmark{.name = "put_signal_rate",
              .help = "put_signals a second to one peer (--pattern alltoall: to all in turn), "
                      "against put, quiet, put, quiet",
              .defaults = {.sizes = {64, 64},
                           .iterations = 20000,
                           .warmup_iterations = 1000,
                           .window = 1024,
                           .pattern = Pattern::Pairs},
              .run = run_put_signal_rate},
    Benchmark{.name = "put_signal_ping_pong",
              .help = "Round trip of a put_signal and its answer",
              .defaults = kOfLatency,
              .run = run_put_signal_ping_pong},
    Benchmark{
        .name = "putv_rate",
        .help = "Rows a second to one peer in lists of --window rows, against puts one by one",
        .defaults = {.sizes = {64, 16 * kKilobyte, 4},
                     .iterations = 20000,
                     .warmup_iterations = 1000,
                     .window = 64,
                     .pattern = Pattern::Pairs},
        .run = run_putv_rate},
    Benchmark{.name = "atomic_latency",
              .help = "Time of one atomic",
              .defaults = kOfWord,
              .run = run_atomic_latency},
    Benchmark{.name = "barrier_latency",
              .help = "Time of weft_barrier_all and weft_sync_all",
              .pe_count_min = 1,
              .defaults = kOfWord,
              .run = run_barrier_latency},
    Benchmark{.name = "alltoall_latency",
              .help = "Time of one step in which all PEs exchange data",
              .pe_count_min = 1,
              .defaults = kOfCollectives,
              .room = Room::Divided,
              .run = run_alltoall_latency},
    Benchmark{.name = "paged_write",
              .help = "Servers fill a client's buffer with pages at random places",
              .defaults = {.sizes = {64 * kKilobyte, 64 * kKilobyte},
                           .iterations = 4,
                           .warmup_iterations = 0,
                           .window = 64},
              .run = run_paged_write},
    Benchmark{.name = "cold_start",
              .help = "The first puts after init to each peer, against the steady state",
              .defaults = {.sizes = {8, 8}, .iterations = 64, .warmup_iterations = 1000},
              .run = run_cold_start},
    Benchmark{.name = "all_get_all",
              .help = "Every PE gets from every other",
              .defaults = reading(kOfExchange),
              .room = Room::AllPeers,
              .run = run_many_to_many},
    Benchmark{.name = "all_put_all",
              .help = "Every PE puts to every other",
              .defaults = kOfExchange,
              .room = Room::AllPeers,
              .run = run_many_to_many},
    Benchmark{.name = "exchange_get",
              .help = "Pairs of PEs get from each other",
              .defaults = in_pairs(reading(kOfExchange)),
              .room = Room::AllPeers,
              .run = run_many_to_many},
    Benchmark{.name = "message_rate",
              .help = "Small puts a second, by all PEs at once",
              .defaults = {.sizes = {8, 8},
                           .iterations = 20000,
                           .warmup_iterations = 1000,
                           .window = 512,
                           .pattern = Pattern::Pairs},
              .room = Room::AllPeers,
              .run = run_message_rate},
    collective<Collective::Alltoall>("alltoall", "weft_team_alltoall of all PEs"),
    collective<Collective::Broadcast>("broadcast", "weft_team_broadcast from PE 0"),
    collective<Collective::Fcollect>("fcollect", "weft_team_fcollect of all PEs"),
    collective<Collective::Collect>("collect",
                                    "weft_team_collect of all PEs, whose lengths differ"),
    collective<Collective::Reduction>("reduction", "weft_team_reduce with -o and -d"),
    Benchmark{.name = "barrier",
              .help = "weft_barrier_all with nothing outstanding",
              .pe_count_min = 1,
              .defaults = kOfWord,
              .run = [](const Run& run) { run_synchronization(run, Synchronization::Barrier); }},
    Benchmark{.name = "sync",
              .help = "weft_team_sync of all PEs",
              .pe_count_min = 1,
              .defaults = kOfWord,
              .run = [](const Run& run) { run_synchronization(run, Synchronization::Sync); }},
};

}  // namespace

std::span<const Benchmark> benchmarks() {
  return kBenchmarks;
}

}  // namespace weft::perf
