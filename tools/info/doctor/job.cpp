#include "tools/info/doctor/job.hpp"

#include <iostream>
#include <iterator>

#include "src/base/error.hpp"
#include "src/bootstrap/connect.hpp"
#include "src/gpu/inventory.hpp"
#include "src/topology/gpu_guess.hpp"
#include "src/topology/node.hpp"

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

Json findings_json(const std::vector<Finding>& findings) {
  Json array = Json::array();
  for (const Finding& finding : findings) {
    array.push_back(finding_json(finding));
  }
  return array;
}

std::vector<Finding> parse_findings(const Json& json) {
  std::vector<Finding> findings;
  for (const Json& one : json) {
    if (auto finding = parse_finding(one)) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

}  // namespace

JobSeat::JobSeat(std::unique_ptr<bootstrap::Bootstrap> bootstrap, bool is_alone)
    : bootstrap_(std::move(bootstrap)), is_alone_(is_alone) {}

std::vector<Json> JobSeat::exchange(const Json& mine) {
  const std::string text = mine.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<Json> all;
  for (const bootstrap::Blob& blob : bootstrap_->allgather(std::as_bytes(std::span(text)))) {
    const auto* first = reinterpret_cast<const char*>(blob.data());
    Json& one = all.emplace_back(Json::parse(first, first + blob.size(), nullptr, false));
    if (one.is_discarded()) {
      fail("PE {} speaks another way; do all PEs run the same weft-info?", all.size() - 1);
    }
  }
  return all;
}

std::optional<PciAddress> JobSeat::my_gpu(const topology::Machine& machine,
                                          const std::string& node) {
  // An identity begins with the kernel's boot id: the machine, of which several nodes may be made.
  const std::string mine = node.substr(0, node.find('/'));
  const Config config = load_config_from_environment();
  topology::GpuQuestion question{
      .setting = config.gpu, .machine_gpu_count = machine.gpus.size(), .machine_pe_count = 0};
  const auto all = exchange({{"machine", mine}});
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other].value("machine", "") == mine) {
      question.machine_pe += other < pe() ? 1 : 0;
      ++question.machine_pe_count;
    }
  }
  for (const std::string& pci : gpu::find_visible_gpus().pci) {
    question.visible.push_back(parse_pci_address(pci).value_or(PciAddress{}));
  }
  const auto rank = environment()("LOCAL_RANK");
  question.local_rank = rank ? std::string_view(*rank) : std::string_view();
  return topology::guess_gpu(question).gpu;
}

NodeQuestion JobSeat::question(const topology::Machine& machine, PeQuestion pe) {
  if (is_alone_) {
    return {topology::assumed_places(machine, pe.count), pe.index};
  }
  // As the library does it (runtime/rails_kind.cpp): by their GPUs, and where PEs are bound.
  const auto numa = topology::bound_numa_node();
  const std::string node = topology::node_identity().id;
  const auto gpu = my_gpu(machine, node);
  NodeQuestion question;
  const auto all = exchange({{"node", node},
                             {"numa", numa ? Json(*numa) : Json(nullptr)},
                             {"gpu", gpu ? Json(to_string(*gpu)) : Json(nullptr)}});
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other].value("node", "") != node) {
      continue;
    }
    if (other == this->pe()) {
      question.local_index = static_cast<std::uint32_t>(question.places.size());
    }
    const Json bound = all[other].value("numa", Json(nullptr));
    const Json taken = all[other].value("gpu", Json(nullptr));
    question.places.push_back(
        {.gpu = taken.is_string() ? parse_pci_address(taken.get<std::string>()) : std::nullopt,
         .numa = bound.is_number_unsigned() ? std::optional(bound.get<std::uint32_t>())
                                            : std::nullopt});
  }
  return question;
}

std::vector<JobMember> JobSeat::exchange_rails(const nlohmann::ordered_json& rails) {
  const topology::NodeIdentity identity = topology::node_identity();
  const auto all = exchange({{"host", identity.hostname}, {"node", identity.id}, {"rails", rails}});
  std::vector<JobMember> members;
  for (const Json& one : all) {
    members.push_back({.pe = static_cast<std::uint32_t>(members.size()),
                       .host = one.value("host", ""),
                       .node = one.value("node", ""),
                       .rails = parse_rails(one.value("rails", Json::array()))});
  }
  return members;
}

std::uint32_t JobSeat::neighbour(const std::vector<JobMember>& members) const {
  const auto count = static_cast<std::uint32_t>(members.size());
  WEFT_CHECK(pe() < count, "PE {} of {}", pe(), count);
  std::uint32_t distance = 1;
  while (distance < count && members[distance].node == members[0].node) {
    ++distance;
  }
  return (pe() + (distance == count ? 1 : distance)) % count;
}

bool is_job(const Config& config) {
  return bootstrap::choose_method(config, environment()) != bootstrap::Method::Single;
}

std::vector<Finding> read_earlier_findings() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const Json json = Json::parse(text, nullptr, false);
  return json.is_array() ? parse_findings(json) : std::vector<Finding>{};
}

void tell_findings(JobSeat& seat, const std::vector<Finding>& earlier, const Reporter& reporter) {
  std::vector<Finding> mine = earlier;
  mine.insert(mine.end(), reporter.added().begin(), reporter.added().end());
  std::erase_if(mine, [](const Finding& finding) { return finding.grade < Grade::Note; });
  const auto all = seat.exchange(
      {{"host", topology::node_identity().hostname}, {"findings", findings_json(mine)}});
  std::size_t well = 0;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const auto theirs = parse_findings(all[pe].value("findings", Json::array()));
    well += theirs.empty() ? 1 : 0;
    for (Finding finding : theirs) {
      if (pe != seat.pe()) {
        finding.text = fmt::format("PE {} on {}: {}", pe, all[pe].value("host", "?"), finding.text);
        reporter.add(finding);
      }
    }
  }
  reporter.ok(fmt::format("{} of {} PEs found nothing to change", well, all.size()),
              {{"pe_count", all.size()}, {"well", well}});
}

}  // namespace weft::info
