// Teams as host and kernels know them, in several shapes.
#pragma once

#include <weft/device.cuh>
#include <weft/device.h>

#include "tests/device/device_suite.hpp"

namespace suite {

// A team as host and kernels know it; destroyed at the end.
class TestTeam {
 public:
  explicit TestTeam(weft_team_t team, bool is_ours = false) : team_(team), is_ours_(is_ours) {
    if (is_member()) {
      number_ = weft_device_team(team);
      require(number_ >= 0, "weft_device_team");
    }
  }

  static TestTeam split(weft_team_range range) {
    weft_team_t team = WEFT_TEAM_INVALID;
    require_weft(weft_team_split(WEFT_TEAM_WORLD, range, &team), "weft_team_split");
    return TestTeam(team, true);
  }

  TestTeam(const TestTeam&) = delete;
  TestTeam& operator=(const TestTeam&) = delete;

  ~TestTeam() {
    weft_barrier_all();
    if (is_ours_ && is_member()) {
      weft_team_destroy(team_);
    }
  }

  [[nodiscard]] bool is_member() const { return team_ != WEFT_TEAM_INVALID; }

  [[nodiscard]] weft::device::Team on_device() const { return {number_}; }

  [[nodiscard]] weft_team_t on_host() const { return team_; }

 private:
  weft_team_t team_;
  bool is_ours_;
  int number_ = -1;
};

// Runs `work(team, name)` for teams of several shapes; `work` is called by all PEs, members or not.
template <typename Work>
void for_teams(Work&& work) {
  const int pes = pe_count();
  work(TestTeam(WEFT_TEAM_WORLD), "world");
  work(TestTeam(WEFT_TEAM_NODE), "node");
  work(TestTeam::split({0, 2, (pes + 1) / 2}), "every other");
  work(TestTeam::split({pes - 1, -1, pes}), "all, backwards");
  if (pes > 1) {
    work(TestTeam::split({1, 1, pes - 1}), "all but the first");
    work(TestTeam::split({pes - 1, 1, 1}), "the last alone");
  }
}

}  // namespace suite
