// Memory limits of control groups, as files in a folder of the test's own: version 2, version 1,
// both, and containers.
#include "src/base/control_groups.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <unistd.h>

#include "src/runtime/memory_limit.hpp"

namespace weft {
namespace {

class ControlGroups : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "weft-groups-" + std::to_string(::getpid());
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal: 1048576 kB\n");
  }

  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  [[nodiscard]] std::uint64_t limit() const { return runtime::memory_limit(root_); }

  [[nodiscard]] std::string root() const { return root_; }

 private:
  std::string root_;
};

constexpr std::uint64_t kWhole = std::uint64_t{1} << 30U;

constexpr const char* kMounts2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* kMounts1 =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST_F(ControlGroups, OfVersion2LimitFromTheProcessUpToTheRoot) {
  write("/proc/self/mountinfo", kMounts2);
  write("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n");
  EXPECT_EQ(limit(), kWhole);
  const std::string slurm = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
  write(slurm + "/step_0/user/task_0/memory.max", "max\n");
  write(slurm + "/memory.max", "268435456\n");
  write(slurm + "/memory.current", "4096\n");
  EXPECT_EQ(limit(), 268435456U);
  write(slurm + "/step_0/memory.max", "134217728\n");
  EXPECT_EQ(limit(), 134217728U);
  ASSERT_EQ(group_memory(root()).size(), 2U);
  EXPECT_EQ(group_memory(root())[1].folder, slurm);
  EXPECT_EQ(group_memory(root())[1].used, 4096U);
}

TEST_F(ControlGroups, OfVersion1LimitTooBesideOthersOfVersion2) {
  write("/proc/self/mountinfo",
        std::string(kMounts1) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("/proc/self/cgroup", "5:cpuset:/a\n4:memory:/slurm/uid_1000/job_7\n0::/\n");
  const std::string slurm = "/sys/fs/cgroup/memory/slurm";
  write(slurm + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), kWhole);
  write(slurm + "/uid_1000/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(limit(), 536870912U);
  write(slurm + "/uid_1000/job_7/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(limit(), 1048576U);
}

// Without a cgroup namespace a container's path is the host's, and its mount shows its own group.
TEST_F(ControlGroups, OfAContainerAreFoundWhereTheyAreMounted) {
  write("/proc/self/mountinfo",
        "36 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
  EXPECT_EQ(limit(), 2097152U);
  write("/proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(limit(), 1048576U);
}

TEST_F(ControlGroups, AreSearchedAtTheUsualPlacesWithoutAListOfMounts) {
  write("/sys/fs/cgroup/memory.max", "4194304\n");
  EXPECT_EQ(limit(), 4194304U);
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(limit(), 1048576U);
}

}  // namespace
}  // namespace weft
