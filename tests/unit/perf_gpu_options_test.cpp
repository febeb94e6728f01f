// weft-perf device and weft-perf stream: what their command lines accept, refuse and mean.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tools/perf/command_line.hpp"

namespace weft::perf::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "weft-perf");
  return parse_command_line(words).gpu.value();
}

std::string refusal(std::vector<const char*> words) {
  try {
    static_cast<void>(parse(std::move(words)));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PerfGpuOptions, EachBenchmarkHasItsNameAndDefaults) {
  for (const Benchmark& benchmark : benchmarks()) {
    const char* side = benchmark.side == Side::Device ? "device" : "stream";
    const Options options = parse({side, std::string(benchmark.name).c_str()});
    EXPECT_EQ(options.benchmark, &benchmark);
    EXPECT_EQ(options.scopes, benchmark.scopes);
    EXPECT_NE(benchmark.run, nullptr);
    EXPECT_TRUE(options.verifies);
  }
}

TEST(PerfGpuOptions, ScopesAreSomeOfWhatThereIs) {
  EXPECT_THAT(parse({"device", "alltoall", "-s", "warp,grid"}).scopes,
              ElementsAre(Scope::Warp, Scope::Grid));
  EXPECT_EQ(parse({"device", "bcast", "-s", "all"}).scopes.size(), kScopeCount);
  EXPECT_THAT(refusal({"device", "shmem_put_bw", "-s", "grid"}), HasSubstr("thread, warp, block"));
  EXPECT_THAT(refusal({"stream", "alltoall", "-s", "block"}), HasSubstr("no scopes"));
}

TEST(PerfGpuOptions, DirectionChangesPutsAndGets) {
  EXPECT_EQ(parse({"device", "shmem_put_bw", "--dir", "read"}).kind, Kind::GetBw);
  EXPECT_EQ(parse({"device", "shmem_get_latency", "--dir", "write"}).kind, Kind::PutLatency);
  EXPECT_THAT(refusal({"device", "barrier", "--dir", "read"}), HasSubstr("--dir"));
}

TEST(PerfGpuOptions, FewThreadsEndAtSmallerSizesUnlessTheEndIsGiven) {
  EXPECT_EQ(largest_size(parse({"device", "alltoall"}), Scope::Thread), std::size_t{1} << 20U);
  EXPECT_EQ(largest_size(parse({"device", "alltoall"}), Scope::Grid), std::size_t{256} << 20U);
  EXPECT_EQ(largest_size(parse({"device", "alltoall", "-e", "4M"}), Scope::Thread),
            std::size_t{4} << 20U);
}

TEST(PerfGpuOptions, LargeSizesHaveFewerIterations) {
  const Options options = parse({"device", "alltoall", "-n", "500"});
  EXPECT_EQ(iterations_for(options, 8, 1U << 20U), 500U);
  EXPECT_EQ(iterations_for(options, 1U << 14U, 1U << 20U), 64U);
  EXPECT_EQ(iterations_for(options, 1U << 20U, 1U << 20U), 4U);
}

TEST(PerfGpuOptions, EachMistakeIsNamed) {
  EXPECT_THAT(refusal({"device", "no_such"}), HasSubstr("no_such"));
  EXPECT_THAT(refusal({"device", "alltoall", "-b", "1K", "-e", "8"}), HasSubstr("-b 1024 -e 8"));
  EXPECT_THAT(refusal({"device", "alltoall", "-c", "0"}), HasSubstr("-c 0"));
  EXPECT_THAT(refusal({"device", "alltoall", "-d", "int8"}), HasSubstr("32 and 64 bits"));
  EXPECT_THAT(refusal({"device", "reduction", "-d", "float", "-o", "and"}), HasSubstr("integers"));
}

}  // namespace
}  // namespace weft::perf::gpu
