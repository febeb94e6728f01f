// The runtime's parts that need no second PE: agreement, processes' lives, memory limits, members.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/api/context_table.hpp"
#include "src/base/error.hpp"
#include "src/base/process.hpp"
#include "src/runtime/agreement.hpp"
#include "src/runtime/membership.hpp"
#include "src/runtime/memory_limit.hpp"

namespace weft::runtime {
namespace {

using collectives::CollectiveRequest;
using ::testing::HasSubstr;

TEST(Context, NumbersThePesOfATeamThatAreNotEvenlySpaced) {
  const rma::Context context(8, {1, 2, 5, 6});
  EXPECT_EQ(context.size(), 4U);
  EXPECT_EQ(context.world_pe(2), 5U);
  EXPECT_EQ(context.world_pe(3), 6U);
  EXPECT_EQ(context.world_pe(4), rma::kNoPe);
  EXPECT_EQ(context.world_pe(UINT32_MAX), rma::kNoPe);
}

TEST(Contexts, KnowTheirTeamUntilTheyAreTaken) {
  api::ContextTable contexts;
  auto* team = reinterpret_cast<weft_team_t>(std::uintptr_t{8});
  const weft_ctx_t first = contexts.adopt(std::make_unique<rma::Context>(2), team);
  const weft_ctx_t second = contexts.adopt(std::make_unique<rma::Context>(2), WEFT_TEAM_WORLD);
  EXPECT_EQ(contexts.team_of(first), team);
  const auto taken =
      contexts.take([&](weft_ctx_t /*handle*/, weft_team_t own) { return own == team; });
  EXPECT_EQ(taken.size(), 1U);
  EXPECT_EQ(contexts.team_of(first), std::nullopt);
  EXPECT_EQ(contexts.team_of(second), WEFT_TEAM_WORLD);
}

CollectiveRequest allocation(std::uint64_t bytes, std::uint64_t alignment = 64) {
  return {.kind = static_cast<std::uint64_t>(RequestKind::Allocate),
          .bytes = bytes,
          .alignment = alignment};
}

TEST(Agreement, IsReachedWhenAllAskForTheSame) {
  EXPECT_EQ(disagreement("weft_malloc", std::vector(5, allocation(8))), std::nullopt);
}

TEST(Agreement, NamesTheFirstPeThatAskedForSomethingElse) {
  std::vector<CollectiveRequest> requests(4, allocation(32));
  requests[2] = allocation(64);
  EXPECT_EQ(
      disagreement("weft_malloc", requests),
      "weft_malloc: PE 2 asked for 64 bytes, PE 0 for 32; the arguments must be the same on all "
      "PEs");
  requests[1] = allocation(32, 128);
  EXPECT_THAT(disagreement("weft_align", requests).value_or(""),
              HasSubstr("PE 1 asked for 32 bytes aligned to 128, PE 0 for 32 bytes aligned to 64"));
  requests[1] = {.kind = static_cast<std::uint64_t>(RequestKind::Release), .offset = 4096};
  EXPECT_THAT(disagreement("weft_malloc", requests).value_or(""),
              HasSubstr("PE 1 asked to free the block at heap offset 4096"));
}

TEST(Agreement, WindowsOfHostAndGpuMemoryAndWhatIsNoneAreNamed) {
  const auto says = [](RequestKind kind, std::uint64_t offset = 0) {
    const std::vector<CollectiveRequest> requests{
        {.kind = static_cast<std::uint64_t>(RequestKind::Window), .bytes = 8},
        {.kind = static_cast<std::uint64_t>(kind), .bytes = 16, .offset = offset}};
    return disagreement("call", requests).value_or("");
  };
  EXPECT_THAT(
      says(RequestKind::DeviceWindow),
      HasSubstr(
          "PE 1 asked for a window of 16 bytes of GPU memory, PE 0 for a window of 8 bytes;"));
  EXPECT_THAT(says(RequestKind::NoWindow),
              HasSubstr("16 bytes that cannot be one (see its own message)"));
  EXPECT_THAT(says(RequestKind::WindowEnd), HasSubstr("to unregister what is no window"));
  EXPECT_THAT(says(RequestKind::WindowEnd, 3), HasSubstr("to unregister window 3"));
  EXPECT_THAT(says(RequestKind::DeviceWindowEnd),
              HasSubstr("to unregister a window of GPU memory"));
  EXPECT_THAT(says(RequestKind::Adopt), HasSubstr("to make 16 bytes symmetric"));
  EXPECT_THAT(says(RequestKind::AdoptEnd), HasSubstr("to unregister what was not made symmetric"));
  EXPECT_THAT(says(RequestKind::AdoptEnd, 64), HasSubstr("what is symmetric at heap offset 64"));
}

TEST(Liveness, AProcessIsDeadBeforeAndAfterItIsReaped) {
  EXPECT_TRUE(is_process_alive(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // a zombie now
  EXPECT_FALSE(is_process_alive(child));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_process_alive(child));
}

TEST(MemoryLimit, IsTheLowerOfTheMachineAndItsContainer) {
  EXPECT_GT(memory_limit(), 0U);
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / fmt::format("weft-limit-{}", ::getpid());
  std::filesystem::create_directories(root / "proc");
  std::filesystem::create_directories(root / "sys/fs/cgroup");
  std::ofstream(root / "proc/meminfo") << "MemTotal:       2048 kB\nMemFree: 1 kB\n";
  std::ofstream(root / "sys/fs/cgroup/memory.max") << "max\n";
  EXPECT_EQ(memory_limit(root), 2048U * 1024);
  std::ofstream(root / "sys/fs/cgroup/memory.max") << "4096\n";
  EXPECT_EQ(memory_limit(root), 4096U);
  std::filesystem::remove_all(root);
  EXPECT_EQ(memory_limit(root), 0U);
}

TEST(Member, ComesBackFromItsBytes) {
  const Member mine{.version = fmt::format("{}.{}", 0, 1),
                    .node_identity = "boot/net:1/pid:2",
                    .hostname = "node7",
                    .cores = {5},
                    .heap = {.pid = 12, .descriptor = 3, .bytes = 4096}};
  const Member read = decode(encode(mine), Pe(4));
  EXPECT_EQ(read.node_identity, mine.node_identity);
  EXPECT_EQ(read.hostname, mine.hostname);
  EXPECT_EQ(read.heap.pid, 12);
  EXPECT_EQ(read.heap.bytes, 4096U);
}

TEST(Member, BytesThatAreTooFewAreAnErrorThatNamesThePe) {
  bootstrap::Blob blob = encode(Member{fmt::format("{}.{}", 0, 1), "", "", {}, {}});
  for (std::size_t size = 0; size < blob.size(); ++size) {
    EXPECT_THROW(static_cast<void>(decode(
                     {blob.begin(), blob.begin() + static_cast<std::ptrdiff_t>(size)}, Pe(4))),
                 Error);
  }
}

}  // namespace
}  // namespace weft::runtime
