// The PEs of a job as weft-run knows them: which have started, which still run, and how the others
// ended.
//
// One owner thread, weft-run's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/ids.hpp"
#include "tools/run/agent_link.hpp"

namespace weft::run {

class PeTable {
 public:
  explicit PeTable(std::size_t count) : states_(count) {}

  // Both throw std::out_of_range for a PE that the job does not have.
  void note_start(std::uint32_t pe, std::uint32_t pid) { states_.at(pe).pid = pid; }

  void note_end(std::uint32_t pe, int wait_status) { states_.at(pe).wait_status = wait_status; }

  // 0 if it has not started.
  [[nodiscard]] std::uint32_t pid(std::uint32_t pe) const { return states_[pe].pid; }

  // Empty until it has ended.
  [[nodiscard]] std::optional<int> wait_status(std::uint32_t pe) const {
    return states_[pe].wait_status;
  }

  [[nodiscard]] bool has_failed(std::uint32_t pe) const;
  [[nodiscard]] bool have_ended_well() const;

  // Those of the link that have not ended, started or not.
  [[nodiscard]] std::vector<Pe> running_of(const AgentLink& link) const;

  // "PEs 0, 1 still ran; 'beta' has not started PE 2".
  [[nodiscard]] std::string describe_running(std::span<const AgentLink> links) const;
  // "'beta' has not started PE 2"; empty if all have started.
  [[nodiscard]] std::string describe_unstarted(std::span<const AgentLink> links) const;

 private:
  struct State {
    std::uint32_t pid = 0;
    std::optional<int> wait_status;
  };

  std::vector<State> states_;
};

// "the agent of this machine", "'beta'".
[[nodiscard]] std::string name_of(const AgentLink& link);

}  // namespace weft::run
