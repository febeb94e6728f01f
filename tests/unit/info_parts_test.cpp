// The parts of weft-info that read the system, on trees of files made here, and the doctor's lines
// and words.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "tools/info/bootstrap_found.hpp"
#include "tools/info/doctor/doctor.hpp"
#include "tools/info/doctor/unreached.hpp"
#include "tools/info/heap_report.hpp"
#include "tools/info/kernel_features.hpp"
#include "tools/info/memory_limits.hpp"

namespace weft::info {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Variables = std::map<std::string, std::string, std::less<>>;

Lookup lookup_in(const Variables& variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

BootstrapFound found_in(const Variables& variables) {
  const Lookup lookup = lookup_in(variables);
  return find_bootstrap(load_config(lookup), lookup);
}

class InfoTree : public testing::Test {
 protected:
  InfoTree()
      : root_(std::filesystem::temp_directory_path() / fmt::format("weft-info-{}", ::getpid())) {}

  ~InfoTree() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << '\n';
  }

  [[nodiscard]] std::string root() const { return root_.string(); }

  [[nodiscard]] Permission feature(const std::string& name, const std::string& release) const {
    for (const Permission& permission : kernel_features(root(), release)) {
      if (permission.name == name) {
        return permission;
      }
    }
    return {"there is no " + name, false, ""};
  }

 private:
  std::filesystem::path root_;
};

TEST(InfoBootstrap, EachLauncherIsKnownByItsVariables) {
  const auto tcp = found_in({{"WEFT_RENDEZVOUS", "h:1"}, {"WEFT_PE", "2"}, {"WEFT_PE_COUNT", "8"}});
  EXPECT_THAT(bootstrap_text(tcp),
              testing::StartsWith(
                  "bootstrap: tcp, known by WEFT_RENDEZVOUS, WEFT_PE, WEFT_PE_COUNT: PE 2 of 8\n"));
  const auto torchrun = found_in(
      {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}});
  EXPECT_THAT(bootstrap_text(torchrun), AllOf(HasSubstr("torchrun"), HasSubstr("PE 1 of 4")));
  EXPECT_THAT(torchrun.trouble, HasSubstr("set WEFT_JOB_SECRET"));
  EXPECT_EQ(found_in({}).method, "single");
  const auto half = found_in({{"WEFT_PE", "5"}, {"WEFT_PE_COUNT", "2"}});
  EXPECT_THAT(bootstrap_text(half), AllOf(testing::StartsWith("bootstrap: none fits"),
                                          HasSubstr("WEFT_PE=5 is not below WEFT_PE_COUNT=2")));
  EXPECT_EQ(found_in({}).trouble, "");
}

TEST(InfoBootstrap, TasksOfAStepAreKnownAndABatchScriptIsNone) {
  const auto step = found_in({{"SLURM_PROCID", "2"},
                              {"SLURM_STEP_NUM_TASKS", "8"},
                              {"SLURM_STEP_NODELIST", "h[0-1]"},
                              {"SLURM_JOB_ID", "1"},
                              {"SLURM_STEP_ID", "0"}});
  EXPECT_THAT(bootstrap_text(step), AllOf(HasSubstr("slurm"), HasSubstr("PE 2 of 8")));
  EXPECT_THAT(step.trouble, HasSubstr("WEFT_JOB_SECRET"));
  const auto script = found_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  EXPECT_EQ(script.method, "single");
  EXPECT_EQ(script.trouble, "");
}

TEST(InfoBootstrap, LaunchersThatWeftDoesNotHearAreNamed) {
  const auto pmi = found_in({{"PMI_FD", "9"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "8"}});
  EXPECT_THAT(bootstrap_text(pmi), AllOf(HasSubstr("pmi"), HasSubstr("PE 1 of 8")));
  const auto unserved = found_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "8"}});
  EXPECT_EQ(unserved.method, "");
  EXPECT_THAT(unserved.trouble, HasSubstr("PMI_SIZE=8"));
}

TEST(InfoBootstrap, AMethodThatIsAskedForAndLacksItsVariablesIsTrouble) {
  const auto found = found_in({{"WEFT_BOOTSTRAP", "pmix"}});
  EXPECT_EQ(found.method, "");
  EXPECT_THAT(found.trouble, HasSubstr("pmix"));
  EXPECT_THAT(found.variables, testing::ElementsAre("WEFT_BOOTSTRAP"));
}

TEST(InfoKernel, VersionsAreReadFromTheRelease) {
  EXPECT_EQ(parse_kernel_version("6.18.44-fc-v445"), (KernelVersion{6, 18}));
  EXPECT_EQ(parse_kernel_version("5.4.0"), (KernelVersion{5, 4}));
  EXPECT_EQ(parse_kernel_version(""), (KernelVersion{0, 0}));
  EXPECT_LT((KernelVersion{5, 9}), (KernelVersion{5, 12}));
}

TEST_F(InfoTree, DmaBufNeedsTheKernelAndTheOpenModules) {
  EXPECT_THAT(feature("dma-buf of GPUs", "6.1.0").detail, HasSubstr("no NVIDIA driver"));
  write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10");
  EXPECT_FALSE(feature("dma-buf of GPUs", "6.1.0").allowed);
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10");
  EXPECT_TRUE(feature("dma-buf of GPUs", "6.1.0").allowed);
  EXPECT_THAT(feature("dma-buf of GPUs", "5.11.9").detail, HasSubstr("5.12"));
}

TEST_F(InfoTree, ModulesAndDevicesAreFoundByTheirFiles) {
  EXPECT_FALSE(feature("GPUDirect peermem", "6.1").allowed);
  EXPECT_FALSE(feature("gdrcopy", "6.1").allowed);
  EXPECT_FALSE(feature("network namespaces", "6.1").allowed);
  EXPECT_FALSE(feature("pidfd_getfd", "5.5").allowed);
  EXPECT_TRUE(feature("pidfd_getfd", "5.6").allowed);
  write("sys/module/nvidia_peermem/refcnt", "0");
  write("dev/gdrdrv", "");
  write("proc/sys/user/max_net_namespaces", "100");
  EXPECT_TRUE(feature("GPUDirect peermem", "6.1").allowed);
  EXPECT_TRUE(feature("gdrcopy", "6.1").allowed);
  EXPECT_TRUE(feature("network namespaces", "6.1").allowed);
}

TEST_F(InfoTree, ATranslatingIommuIsSaidToSlowDirectTraffic) {
  EXPECT_TRUE(feature("direct PCIe traffic", "6.1").allowed);
  write("sys/kernel/iommu_groups/0/type", "DMA-FQ");
  EXPECT_THAT(feature("direct PCIe traffic", "6.1").detail, HasSubstr("iommu=pt"));
  write("sys/kernel/iommu_groups/0/type", "identity");
  EXPECT_TRUE(feature("direct PCIe traffic", "6.1").allowed);
}

TEST_F(InfoTree, MemoryIsTheLeastOfTheMachineAndAllControlGroupsAbove) {
  EXPECT_EQ(read_memory_limits(root()).available_bytes, std::nullopt);
  write("proc/meminfo",
        "MemTotal: 9 kB\nMemAvailable:   4096 kB\nHugePages_Free:  3\nHugepagesize: 2048 kB");
  write("proc/self/cgroup", "0::/a/b");
  EXPECT_EQ(read_memory_limits(root()).available_bytes, 4096U * 1024);
  write("sys/fs/cgroup/a/b/memory.max", "max");
  write("sys/fs/cgroup/a/b/memory.current", "100");
  write("sys/fs/cgroup/a/memory.max", "1000");
  write("sys/fs/cgroup/a/memory.current", "400");
  write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [advise] never");
  const MemoryLimits limits = read_memory_limits(root());
  EXPECT_EQ(limits.available_bytes, 600U);
  EXPECT_EQ(limits.huge_page_bytes, 2048U * 1024);
  EXPECT_EQ(limits.huge_page_free, 3U);
  EXPECT_EQ(limits.transparent_shared, "advise");
}

TEST_F(InfoTree, AControlGroupThatIsOverItsLimitLeavesNothing) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", "1000");
  write("sys/fs/cgroup/memory.current", "1400");
  EXPECT_EQ(read_memory_limits(root()).available_bytes, 0U);
}

TEST_F(InfoTree, LockedMemorySufficesByItsLimitOrByPrivilege) {
  EXPECT_TRUE(may_lock({.soft = std::nullopt}, 1 << 20U, false));
  EXPECT_FALSE(may_lock({.soft = 65536}, 1 << 20U, false));
  EXPECT_TRUE(may_lock({.soft = 65536}, 1 << 20U, true));
  write("status", "Name: x\nCapEff:\t0000000000004000\n");
  EXPECT_TRUE(ignores_memlock(root() + "/status"));
  write("status", "Name: x\nCapEff:\t000001ffffffbfff\n");
  EXPECT_FALSE(ignores_memlock(root() + "/status"));
}

TEST(InfoHeaps, TextSaysWhenAllHeapsTogetherAreTooMuch) {
  HeapReport report{.heap_bytes = std::uint64_t{4} << 30U, .pe_count = 8};
  report.memory.available_bytes = std::uint64_t{16} << 30U;
  EXPECT_THAT(heap_text(report),
              AllOf(HasSubstr("4 GiB for each PE (WEFT_HEAP_SIZE), 32 GiB for 8 PEs"),
                    HasSubstr("too few"), HasSubstr("ulimit -l")));
  report.pe_count = 2;
  EXPECT_THAT(heap_text(report), Not(HasSubstr("too few")));
}

TEST(InfoDoctor, FindingsComeBackFromTheirLinesAsTheyWere) {
  const Finding finding{Grade::Note, "text with \"quotes\" and\nlines", "do that", {{"ns", 7}}};
  const auto line = parse_step_line(finding_json(finding).dump());
  ASSERT_TRUE(line && line->finding);
  EXPECT_EQ(line->finding->grade, Grade::Note);
  EXPECT_EQ(line->finding->text, finding.text);
  EXPECT_EQ(line->finding->remedy, finding.remedy);
  EXPECT_EQ(line->finding->figures["ns"], 7);
}

TEST(InfoDoctor, LinesThatALibraryPrintsAreNoFindings) {
  for (const char* line :
       {"", "libfabric:123: warning", "{", "[1]", "7", R"({"grade":"odd"})", R"({"seat":"x"})"}) {
    EXPECT_FALSE(parse_step_line(line).has_value()) << line;
  }
  EXPECT_EQ(parse_step_line(R"({"trying":"a"})")->trying, "a");
  EXPECT_EQ(parse_step_line(R"({"seat":3})")->seat, 3U);
}

constexpr const char* kLog =
    "weft: PE 0: info: rail 0 (nic0, 10.0.0.1) does not reach rail 1 of PE 1 (10.0.1.2): nothing "
    "answers; continuing on the other rails\n"
    "weft: PE 1: warning: rail 0 (nic0, 10.0.1.1) does not reach rail 0 of PE 0 (10.0.0.1): "
    "nothing answers; no other rail is left, retrying\n"
    "weft: PE 0: warning: rail 1 (nic1, 10.0.0.2) does not reach rail 1 of PE 1 (10.0.1.2): "
    "nothing answers; continuing on the other rails\n"
    "weft: PE 0: info: rail 1 (nic1, 10.0.0.2) does not reach rail 0 of PE 1 (10.0.1.1): "
    "Connection refused; continuing on the other rails\n";

TEST(InfoDoctor, RailsThatWereNotReachedAreReadFromThePesOwnLines) {
  const auto unreached = find_unreached(kLog, 0);
  ASSERT_EQ(unreached.size(), 3U);
  EXPECT_EQ(unreached[2].rail, 1U);
  EXPECT_EQ(unreached[2].nic, "nic1");
  EXPECT_EQ(unreached[2].peer_rail, 0U);
  EXPECT_EQ(unreached[2].pe, 1);
  EXPECT_EQ(unreached[2].where, "10.0.1.1");
  EXPECT_EQ(unreached[2].reason, "Connection refused");
  const std::string again = "weft: PE 0: info: rail 1 (nic1) reaches rail 0 of PE 1 again\n";
  EXPECT_EQ(find_unreached(kLog + again, 0).size(), 2U);
}

TEST(InfoDoctor, RailThatNoneReachesIsOneProblem) {
  const Reporter reporter(nullptr);
  report_unreached(find_unreached(kLog, 0), 2, reporter);
  ASSERT_EQ(reporter.added().size(), 2U);
  EXPECT_EQ(reporter.added()[0].text,
            "no rail of this PE reaches rail 1 of PE 1 (10.0.1.2): nothing answers");
  EXPECT_THAT(reporter.added()[0].remedy, HasSubstr("ping -I nic0 10.0.1.2"));
  EXPECT_EQ(reporter.added()[1].text,
            "rail 1 nic1 does not reach rail 0 (10.0.1.1) of PE 1: Connection refused");
}

StepResult step_with(std::string summary, std::vector<Finding> findings) {
  return {
      .name = "s", .title = "t", .summary = std::move(summary), .findings = std::move(findings)};
}

TEST(InfoDoctor, VerdictNumbersProblemsAndNotesWithTheirRemedies) {
  Diagnosis diagnosis;
  diagnosis.steps = {step_with("a heap", {{Grade::Note, "slow", "hurry", nullptr}}),
                     step_with("2 rails", {{Grade::Ok, "fine", "", nullptr}})};
  EXPECT_TRUE(diagnosis.is_ready());
  EXPECT_EQ(verdict_text(diagnosis),
            "verdict: this machine is ready: a heap, 2 rails\n1 thing that Weft works without:\n"
            "  1. slow\n     -> hurry\n");
  diagnosis.steps.push_back(step_with("", {{Grade::Problem, "broken", "mend it", nullptr}}));
  EXPECT_FALSE(diagnosis.is_ready());
  EXPECT_THAT(
      verdict_text(diagnosis),
      HasSubstr("this machine is not ready: 1 problem to solve\n  1. broken\n     -> mend it\n"));
}

}  // namespace
}  // namespace weft::info
