#include "tools/info/report.hpp"

#include <cstdlib>

#include "src/base/error.hpp"

namespace weft::info {

Lookup environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Report make_report(const Config& config, PeQuestion pe, const std::string& topology_file) {
  if (pe.index >= pe.count) {
    fail(Status::InvalidArgument, "--pe {} is not one of --pes {}; the first is 0", pe.index,
         pe.count);
  }
  const bool live = topology_file.empty();
  Report report;
  report.machine_source = live ? "this machine" : topology_file;
  report.machine = live ? topology::read_machine() : topology::read_machine_from_xml(topology_file);
  report.pe = pe;
  if (live) {
    report.fabric = usable_nics(config);
    report.node = topology::node_identity();
    report.limits = read_host_limits();
    report.gpus = gpu::take_inventory();
    report.bootstrap = find_bootstrap(config, environment());
    report.counters = read_counters_folder(config.counters_dir);
    report.heaps = make_heap_report(config, pe.count, report.limits->memlock);
  } else {
    report.fabric.nics = described_nics(report.machine);
  }
  const auto places = topology::assumed_places(report.machine, pe.count);
  report.place = places[pe.index];
  const topology::NicLimits limits = topology::nic_limits(config);
  report.choice =
      topology::choose_nics(report.machine, {report.fabric.nics, places, pe.index, limits});
  const std::vector<topology::PePlace> nowhere(pe.count);
  report.choice_without_gpu =
      topology::choose_nics(report.machine, {report.fabric.nics, nowhere, pe.index, limits});
  if (report.fabric.library.has_found()) {
    report.rails = try_rails(config, report.choice.chosen);
  }
  return report;
}

}  // namespace weft::info
