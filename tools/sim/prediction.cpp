#include "tools/sim/prediction.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/error.hpp"
#include "tools/perf/table.hpp"
#include "tools/sim/simulation.hpp"

namespace weft::sim {
namespace {

// Nodes that stand for a larger job while each PE sends to its next peers only. They form a ring,
// as all nodes do. The times of 64 and of 256 nodes agree to four digits.
constexpr std::uint32_t kRingNodes = 64;

std::string place_text(const Setup& setup, const Limit& limit) {
  return fmt::format("NIC {} of n{}.g{}", limit.nic, setup.node_of(limit.pe),
                     limit.pe % setup.pes_per_node);
}

std::string limit_text(const Setup& setup, const Limit& limit) {
  const auto percent = [](double part) { return std::lround(std::min(part, 1.0) * 100); };
  const auto nic = [&](const char* what) {
    return fmt::format("{} of {}, {} % busy, its others {} %", what, place_text(setup, limit),
                       percent(limit.busy), percent(limit.others));
  };
  switch (limit.part) {
    case Part::Tx:
      return nic("TX");
    case Part::Rx:
      return nic("RX");
    case Part::RxInTurn:
      return fmt::format("RX, one NIC at each moment: {} % busy", percent(limit.busy));
    case Part::Proxy:
      return fmt::format("proxy, {} % busy", percent(limit.busy));
    case Part::Uplink:
      return fmt::format("uplink of a leaf, {} % busy", percent(limit.busy));
    case Part::Downlink:
      return fmt::format("downlink of a leaf, {} % busy", percent(limit.busy));
    case Part::Nothing:
      break;
  }
  return "nothing";
}

Outcome simulate(Setup setup, std::uint32_t peers) {
  setup.traffic.peers_max = peers;
  return Simulation(std::move(setup)).run();
}

void check_sample(const Setup& setup, const Sample& sample, std::uint32_t peers) {
  const TrafficShape& traffic = setup.traffic;
  if (traffic.pattern != Pattern::AllToAll || traffic.is_shuffled) {
    fail(Status::InvalidArgument,
         "--sample is for alltoall with peers in turn: other patterns have no next peers; leave it "
         "out");
  }
  if (setup.leaves.oversubscription > 0) {
    fail(Status::InvalidArgument,
         "--sample says nothing about links between leaves: the next peers are mostly of the same "
         "leaf; leave out --sample or --oversubscribe");
  }
  if (sample.few == 0 || sample.few >= sample.many || sample.many > peers) {
    fail(Status::InvalidArgument,
         "--sample {},{}: two rising numbers of peers are needed, and {} PEs have {} on other "
         "nodes",
         sample.few, sample.many, setup.pe_count(), peers);
  }
}

Outcome simulate_sample(Setup setup, const Sample& sample, std::string& text) {
  const std::uint32_t peers = setup.pe_count() - setup.pes_per_node;
  check_sample(setup, sample, peers);
  std::uint32_t needed_nodes = std::max(kRingNodes, 2 * sample.many / setup.pes_per_node + 2);
  for (const SlowNic& slow : setup.slow) {
    needed_nodes = std::max(needed_nodes, setup.node_of(slow.pe.value_or(0)) + 1);
  }
  for (const FailedNic& failed : setup.failed) {
    needed_nodes = std::max(needed_nodes, setup.node_of(failed.pe.value_or(0)) + 1);
  }
  text = fmt::format("from {} and {} of {} peers", sample.few, sample.many, peers);
  const double nodes = setup.nodes;
  if (needed_nodes < setup.nodes) {
    text += fmt::format(", {} nodes", needed_nodes);
    setup.nodes = needed_nodes;
  }
  const Outcome few = simulate(setup, sample.few);
  Outcome many = simulate(setup, sample.many);
  const double needed_ns = many.share * many.window_ns * peers / sample.many;
  many.window_ns = extrapolate(sample, few.window_ns, many.window_ns, peers);
  many.share = needed_ns / many.window_ns;
  many.window_bytes *= nodes / setup.nodes * peers / sample.many;
  return many;
}

}  // namespace

double extrapolate(const Sample& sample, double few, double many, double peers) {
  return many + (peers - sample.many) * (many - few) / (sample.many - sample.few);
}

Prediction predict(const Machine& machine, const Question& question) {
  Setup setup = question.setup;
  setup.nic = nic_of(machine, setup.library);
  Prediction prediction;
  if (question.sample) {
    prediction.outcome = simulate_sample(setup, *question.sample, prediction.sample);
  } else {
    prediction.outcome = simulate(setup, setup.traffic.peers_max);
  }
  // Of the full rate, which NICs do not reach where all send to all.
  prediction.outcome.share *= machine.value("efficiency");
  const bool is_alltoall = setup.traffic.pattern == Pattern::AllToAll && !setup.traffic.is_pareto;
  const double pes = setup.pe_count();
  const TrafficShape& traffic = setup.traffic;
  const double messages = static_cast<double>(traffic.steps) * traffic.count_per_step;
  prediction.bytes = is_alltoall ? static_cast<double>(traffic.bytes) * messages * pes
                                 : prediction.outcome.window_bytes / pes;
  const double near_bytes = prediction.bytes * setup.pes_per_node / pes;
  const double copies_us = is_alltoall && setup.library == Library::Nvshmem &&
                                   prediction.bytes > machine.value("copies_beyond_mb") * 1e6
                               ? near_bytes / machine.value("copies_gb_per_s") / 1e3
                               : 0;
  const double net_us = prediction.outcome.window_ns / 1e3;
  const Start start = start_of(machine, setup.library, setup.policy);
  const double busy_us = start.start_us + std::max(net_us, copies_us);
  prediction.us = std::max(start.floor_us, busy_us);
  if (start.floor_us > busy_us || start.start_us > std::max(net_us, copies_us)) {
    prediction.limit = "start of the call";
  } else if (copies_us > net_us) {
    prediction.limit = "copies to PEs of the node";
  } else {
    prediction.limit = limit_text(setup, prediction.outcome.limit);
  }
  prediction.algbw_gb_per_s = perf::gigabytes_per_s(prediction.bytes, prediction.us / 1e6);
  prediction.busbw_gb_per_s =
      is_alltoall ? perf::alltoall_bus_bandwidth(prediction.algbw_gb_per_s, setup.pe_count())
                  : prediction.algbw_gb_per_s;
  return prediction;
}

std::optional<double> predict_put_bw(const Machine& machine, Library library, std::uint64_t bytes) {
  constexpr std::uint64_t kElementBytes = 8;  // double
  const double ctas = machine.value("put_bw_ctas");
  if (static_cast<double>(bytes / kElementBytes) < ctas) {
    return std::nullopt;
  }
  const double rate = machine.value("nic_gb_per_s") * machine.nics_per_pe;
  const double proxy_us = ctas * machine.value(fmt::format("{}.proxy_ns", name_of(library))) / 1e3;
  const double wire_us = static_cast<double>(bytes) / rate / 1e3 + machine.value("put_bw_gap_us");
  return static_cast<double>(bytes) / std::max(proxy_us, wire_us) / 1e3;
}

}  // namespace weft::sim
