// The doctor as one PE of a job: who the others are, whose rails are tried, and bringing together what all
// found. Collective calls end with an Error that names who is missing.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/bootstrap/bootstrap.hpp"
#include "src/topology/machine.hpp"
#include "tools/info/doctor/finding.hpp"
#include "tools/info/doctor/rail_end.hpp"
#include "tools/info/doctor/rails_plan.hpp"
#include "tools/info/report.hpp"

namespace weft::info {

struct JobMember {
  std::uint32_t pe = 0;
  std::string host;
  std::string node;
  std::vector<RemoteRail> rails;
};

class JobSeat {
 public:
  // `is_alone`: both PEs are this process.
  JobSeat(std::unique_ptr<bootstrap::Bootstrap> bootstrap, bool is_alone);

  [[nodiscard]] std::uint32_t pe() const { return bootstrap_->pe().value; }

  [[nodiscard]] bool is_alone() const { return is_alone_; }

  // For the choice of NICs. Collective, unless alone: then as weft-info answers it, for `pe`.
  [[nodiscard]] NodeQuestion question(const topology::Machine& machine, PeQuestion pe);

  // Collective. By PE.
  [[nodiscard]] std::vector<JobMember> exchange_rails(const nlohmann::ordered_json& rails);
  // Collective. What every PE says, by PE.
  [[nodiscard]] std::vector<nlohmann::ordered_json> exchange(const nlohmann::ordered_json& mine);

  void barrier() { bootstrap_->barrier(); }

  // Whose rails this PE writes to: at the distance at which PE 0 finds another node, or the next one. So
  // every PE is the neighbour of exactly one.
  [[nodiscard]] std::uint32_t neighbour(const std::vector<JobMember>& members) const;

 private:
  // Collective.
  [[nodiscard]] std::optional<PciAddress> my_gpu(const topology::Machine& machine,
                                                 const std::string& node);

  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;
  bool is_alone_;
};

// Whether a launcher started this process as one of several PEs.
[[nodiscard]] bool is_job(const Config& config);

// What the steps before this one found, from standard input.
[[nodiscard]] std::vector<Finding> read_earlier_findings();

// Collective. PE 0 adds what the others found, with their names; all know how bad the worst is.
void tell_findings(JobSeat& seat, const std::vector<Finding>& earlier, const Reporter& reporter);

}  // namespace weft::info
