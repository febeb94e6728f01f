// weft-perf's command line: what it accepts, what it refuses, and what the library is told.
#include <gtest/gtest.h>

#include <stdexcept>

#include <gmock/gmock.h>

#include "tools/perf/benchmark.hpp"
#include "tools/perf/command_line.hpp"

namespace weft::perf {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "weft-perf");
  return parse_command_line(words).host.value();
}

std::string refusal(std::vector<const char*> words) {
  try {
    static_cast<void>(parse(std::move(words)));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PerfOptions, EachBenchmarkHasItsNameAndDefaults) {
  for (const Benchmark& benchmark : benchmarks()) {
    const Options options = parse({std::string(benchmark.name).c_str()});
    EXPECT_EQ(options.benchmark, &benchmark);
    EXPECT_EQ(options.iterations, benchmark.defaults.iterations);
    EXPECT_NE(benchmark.run, nullptr);
  }
}

TEST(PerfOptions, BeginAloneMovesTheEndUp) {
  const Options options = parse({"put_signal_rate", "-b", "4K"});
  EXPECT_EQ(options.sizes.begin, 4096U);
  EXPECT_EQ(options.sizes.end, 4096U);
}

TEST(PerfOptions, JsonGoesToStdoutOrToAFile) {
  EXPECT_TRUE(parse({"put_bw", "--json"}).prints_json);
  const Options to_file = parse({"put_bw", "--json=out.jsonl"});
  EXPECT_FALSE(to_file.prints_json);
  EXPECT_EQ(to_file.output, "out.jsonl");
  EXPECT_TRUE(parse({"put_bw", "--json", "-n", "5"}).prints_json);
}

TEST(PerfOptions, EachMistakeIsNamed) {
  EXPECT_THAT(refusal({}), HasSubstr("no benchmark is named"));
  EXPECT_THAT(refusal({"--no-such-option"}), HasSubstr("no-such-option"));
  EXPECT_THAT(refusal({"no-such-benchmark"}), HasSubstr("no-such-benchmark"));
  EXPECT_THAT(refusal({"put_bw", "-b", "1K", "-e", "8"}), HasSubstr("-b 1024 -e 8"));
  EXPECT_THAT(refusal({"put_bw", "-f", "1"}), HasSubstr("factor"));
  EXPECT_THAT(refusal({"put_bw", "-n", "0"}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({"put_bw", "-d", "int128"}), HasSubstr("int64"));
  EXPECT_THAT(refusal({"atomic_latency", "-a", "nand"}), HasSubstr("compare_swap"));
  EXPECT_THAT(refusal({"put_bw", "--dir", "up"}), HasSubstr("read or write"));
  EXPECT_THAT(refusal({"alltoall_latency", "--pattern", "ring"}), HasSubstr("incast"));
  EXPECT_THAT(refusal({"alltoall_latency", "--collective", "--pattern", "pairs"}),
              HasSubstr("weft_alltoall"));
  EXPECT_THAT(refusal({"put_bw", "--no-such-option"}), HasSubstr("no-such-option"));
}

TEST(PerfOptions, ReductionsAreNamedAndMustSuitTheType) {
  EXPECT_EQ(parse({"reduction"}).reduction, WEFT_SUM);
  EXPECT_EQ(parse({"reduction", "-o", "xor", "-d", "uint64"}).reduction, WEFT_XOR);
  EXPECT_EQ(parse({"reduction", "-o", "all", "-d", "float"}).reduction, std::nullopt);
  EXPECT_EQ(parse({"reduction", "-d", "complex_double"}).type.bytes, 16U);
  EXPECT_THAT(refusal({"reduction", "-o", "avg"}), HasSubstr("prod"));
  EXPECT_THAT(refusal({"reduction", "-o", "xor", "-d", "float"}), HasSubstr("of integers"));
  EXPECT_THAT(refusal({"reduction", "-o", "max", "-d", "complex_float"}), HasSubstr("complex"));
  EXPECT_THAT(refusal({"reduction", "--repeats", "0"}), HasSubstr("--repeats"));
}

TEST(PerfOptions, AggregationIsBothWaysUnlessOneIsAskedFor) {
  EXPECT_EQ(parse({"all_get_all"}).aggregates, std::nullopt);
  EXPECT_EQ(parse({"all_get_all", "--aggregate"}).aggregates, true);
  EXPECT_EQ(parse({"all_get_all", "--no-aggregate"}).aggregates, false);
  EXPECT_TRUE(parse({"exchange_get"}).reads);
  EXPECT_FALSE(parse({"all_put_all"}).reads);
}

TEST(PerfOptions, HeapHasRoomForTheMessagesOfAllPeers) {
  const auto heap_mb = [](std::size_t pe_count) {
    const auto variables = environment_of(parse({"all_get_all", "-e", "8M"}), pe_count);
    return std::stoul(variables.back().second);
  };
  EXPECT_GT(heap_mb(8), 8 * 2 * 8U);
  EXPECT_GT(heap_mb(8), heap_mb(2));
}

TEST(PerfOptions, LibraryIsToldThePolicyTheWarmUpAndTheHeap) {
  const auto variables =
      environment_of(parse({"put_bw", "--policy", "coupled", "--warmup", "off"}), 2);
  EXPECT_THAT(variables, Contains(Pair("WEFT_RAIL_POLICY", "coupled")));
  EXPECT_THAT(variables, Contains(Pair("WEFT_WARMUP", "no")));
  EXPECT_EQ(environment_of(parse({"put_bw"}), 2).size(), 1U);  // only the heap
}

TEST(PerfOptions, WindowShrinksForLargeMessages) {
  const Options options = parse({"put_bw", "--window", "64"});
  EXPECT_EQ(window_for(options, 8), 64U);
  EXPECT_EQ(window_for(options, std::size_t{4} << 20U), 16U);
  EXPECT_EQ(window_for(options, std::size_t{1} << 30U), 1U);
}

TEST(PerfOptions, PagedWriteHasOneClientUnlessMoreAreAskedFor) {
  EXPECT_EQ(parse({"paged_write"}).clients, 1U);
  EXPECT_EQ(parse({"paged_write", "--clients", "8"}).clients, 8U);
  EXPECT_THAT(refusal({"paged_write", "--clients", "0"}), HasSubstr("--clients is at least 1"));
}

}  // namespace
}  // namespace weft::perf
