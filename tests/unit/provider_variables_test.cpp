// Which variables libfabric's providers are started and opened with, on machines of any kind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include <gmock/gmock.h>

#include "src/fabric/variables.hpp"

namespace weft::fabric {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> texts_of(const std::vector<Variable>& variables) {
  std::vector<std::string> texts;
  for (const Variable& one : variables) {
    texts.push_back(one.name + "=" + one.value);
  }
  return texts;
}

std::vector<std::string> at_start(const StartFacts& facts) {
  return texts_of(variables_at_start(facts));
}

std::function<bool(std::string_view)> is_one_of(std::set<std::string, std::less<>> names) {
  return [names = std::move(names)](std::string_view name) { return names.contains(name); };
}

// As fi_version(3).
constexpr std::uint32_t version(std::uint32_t major, std::uint32_t minor) {
  return (major << 16U) | minor;
}

constexpr std::uint32_t kOld = version(1, 17);
constexpr std::uint32_t kNew = version(2, 6);

TEST(VariablesAtStart, OfAMachineWithoutRdmaAreSmallBuffersForAnOldLibrary) {
  EXPECT_THAT(at_start({.library_version = kOld}),
              UnorderedElementsAre("FI_OFI_RXM_BUFFER_SIZE=8192", "FI_OFI_RXM_MSG_RX_SIZE=512"));
  EXPECT_THAT(at_start({.library_version = kOld, .is_set = is_one_of({"FI_OFI_RXM_BUFFER_SIZE"})}),
              UnorderedElementsAre("FI_OFI_RXM_MSG_RX_SIZE=512"));
  EXPECT_THAT(at_start({.library_version = kOld, .is_set = is_one_of({"FI_OFI_RXM_MSG_RX_SIZE"})}),
              UnorderedElementsAre("FI_OFI_RXM_BUFFER_SIZE=8192"));
  EXPECT_THAT(at_start({.library_version = kNew, .pe_count = 100'000}), IsEmpty());
  EXPECT_THAT(at_start({.library_version = kOld, .rdma_devices = 1}), IsEmpty());
}

TEST(VariablesAtStart, SizeQueuesForAllRailsOfAllPesOnceTheProvidersOwnSizeIsTooSmall) {
  EXPECT_THAT(at_start({.library_version = kNew, .rdma_devices = 4, .pe_count = 256}), IsEmpty());
  EXPECT_THAT(at_start({.library_version = kNew, .rdma_devices = 4, .pe_count = 257}),
              UnorderedElementsAre("FI_UNIVERSE_SIZE=1028"));
  EXPECT_THAT(at_start({.library_version = kNew, .cxi_devices = 4, .pe_count = 1024}),
              UnorderedElementsAre("FI_UNIVERSE_SIZE=4096"));
  EXPECT_THAT(at_start({.library_version = kNew,
                        .rdma_devices = 4,
                        .pe_count = 1024,
                        .is_set = is_one_of({"FI_UNIVERSE_SIZE"})}),
              IsEmpty());
}

TEST(VariablesAtStart, AskForForkSupportUnlessTheUserHasDecided) {
  StartFacts facts{.library_version = kNew, .rdma_devices = 4, .verbs_needs_fork_support = true};
  EXPECT_THAT(at_start(facts), UnorderedElementsAre("RDMAV_FORK_SAFE=1"));
  for (const char* name : {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE", "FI_EFA_FORK_SAFE",
                           "FI_EFA_USE_HUGE_PAGE", "RDMAV_HUGEPAGES_SAFE"}) {
    facts.is_set = is_one_of({name});
    EXPECT_THAT(at_start(facts), IsEmpty()) << name;
  }
}

TEST(VariablesAtStart, KeepTheCpuOfSlingshotFromCopyingSmallWritesOfGpuMemory) {
  const auto with = [](std::uint32_t library) {
    return at_start({.library_version = library, .cxi_devices = 4, .uses_gpu = true});
  };
  EXPECT_THAT(with(version(1, 22)), UnorderedElementsAre("FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1"));
  EXPECT_THAT(with(version(2, 2)), IsEmpty()) << "nothing helps there";
  EXPECT_THAT(with(version(2, 3)), UnorderedElementsAre("FI_CXI_DISABLE_NON_INJECT_RMA_IDC=1"));
  EXPECT_THAT(at_start({.library_version = kNew, .cxi_devices = 4}), IsEmpty());
}

TEST(SmallWrites, AreLeftToTheNicIfTheLibraryKnowsTheVariable) {
  const auto with = [](std::uint32_t library, const char* name, const char* value) {
    return leaves_small_writes_to_nic(
        library, [=](std::string_view asked) { return asked == name ? value : ""; });
  };
  EXPECT_TRUE(with(version(2, 3), kNoSmallWriteCopies, "1"));
  EXPECT_FALSE(with(version(2, 3), kNoSmallWriteCopies, "0"));
  EXPECT_FALSE(with(version(2, 3), kNoSmallMessageCopies, "1"));
  EXPECT_FALSE(with(version(2, 2), kNoSmallWriteCopies, "1"));
  EXPECT_TRUE(with(version(1, 22), kNoSmallMessageCopies, "1"));
}

TEST(VariablesAtOpening, ShareReceiveBuffersWhereEachConnectionWouldHaveItsOwn) {
  const StartFacts large{.rdma_devices = 4, .pe_count = 64};
  EXPECT_THAT(texts_of(variables_at_opening("verbs;ofi_rxm", large)),
              UnorderedElementsAre("FI_OFI_RXM_USE_SRX=1"));
  EXPECT_THAT(variables_at_opening("tcp;ofi_rxm", large), IsEmpty()) << "it shares them itself";
  EXPECT_THAT(variables_at_opening("verbs;ofi_rxm", {.rdma_devices = 4, .pe_count = 8}), IsEmpty())
      << "32 connections have less than the shared ones";
  StartFacts decided = large;
  decided.is_set = is_one_of({"FI_OFI_RXM_USE_SRX"});
  EXPECT_THAT(variables_at_opening("verbs;ofi_rxm", decided), IsEmpty());
}

TEST(VariablesAtOpening, AskSlingshotForForkSupportOnOldKernels) {
  EXPECT_THAT(variables_at_opening("cxi", {.kernel_copies_at_fork = true}), IsEmpty());
  EXPECT_THAT(texts_of(variables_at_opening("cxi", {.kernel_copies_at_fork = false})),
              UnorderedElementsAre("CXI_FORK_SAFE=1", "CXI_FORK_SAFE_HP=1"));
  EXPECT_THAT(variables_at_opening(
                  "cxi", {.kernel_copies_at_fork = false, .is_set = is_one_of({"CXI_FORK_SAFE"})}),
              IsEmpty());
}

TEST(ScopedVariables, AreSetForAWhileAndNeverReplaceTheUsers) {
  ::setenv("WEFT_TEST_USERS", "theirs", 1);
  {
    const ScopedVariables set({{"WEFT_TEST_USERS", "ours"}, {"WEFT_TEST_OURS", "ours"}});
    EXPECT_STREQ(std::getenv("WEFT_TEST_USERS"), "theirs");
    EXPECT_STREQ(std::getenv("WEFT_TEST_OURS"), "ours");
  }
  EXPECT_STREQ(std::getenv("WEFT_TEST_USERS"), "theirs");
  EXPECT_EQ(std::getenv("WEFT_TEST_OURS"), nullptr);
  ::unsetenv("WEFT_TEST_USERS");
}

}  // namespace
}  // namespace weft::fabric
