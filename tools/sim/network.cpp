#include "tools/sim/network.hpp"

#include <algorithm>
#include <numeric>

namespace weft::sim {
namespace {

constexpr std::uint8_t kUpHop = 1;
constexpr std::uint8_t kDownHop = 2;

std::vector<double> rates_of(const Setup& setup) {
  std::vector<double> rates;
  for (std::uint32_t pe = 0; pe < setup.pe_count(); ++pe) {
    for (std::uint32_t nic = 0; nic < setup.nics_of(pe); ++nic) {
      double rate = setup.nic.bytes_per_ns;
      for (const SlowNic& slow : setup.slow) {
        rate *= slow.nic == nic && slow.pe.value_or(pe) == pe ? slow.factor : 1;
      }
      rates.push_back(rate);
    }
  }
  return rates;
}

}  // namespace

Network::Network(const Setup& setup, EventQueue& events)
    : setup_(setup),
      events_(events),
      tx_moments_(setup, rates_of(setup)),
      rx_moments_(setup, rates_of(setup)) {
  std::uint32_t nic = 0;
  for (std::uint32_t pe = 0; pe < setup.pe_count(); ++pe) {
    first_nic_.push_back(nic);
    nic += setup.nics_of(pe);
  }
  tx_.resize(nic);
  rx_.resize(nic);
  const auto rates = rates_of(setup);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    tx_[i].ns_per_byte = rx_[i].ns_per_byte = 1 / rates[i];
  }
  build_leaves();
}

void Network::build_leaves() {
  const Leaves& leaves = setup_.leaves;
  if (leaves.oversubscription <= 0) {
    return;
  }
  const std::uint32_t nics = *std::ranges::max_element(setup_.nics);
  const std::uint32_t groups = (setup_.nodes + leaves.nodes - 1) / leaves.nodes;
  const std::uint32_t per_group = leaves.is_rail_optimized ? setup_.pes_per_node * nics : 1;
  const std::uint32_t nics_of_leaf =
      leaves.nodes * (leaves.is_rail_optimized ? 1 : setup_.pes_per_node * nics);
  const double rate = setup_.nic.bytes_per_ns * nics_of_leaf / leaves.oversubscription;
  up_.resize(std::size_t{groups} * per_group, {.ns_per_byte = 1 / rate});
  down_ = up_;
  up_work_.resize(up_.size());
  down_work_.resize(up_.size());
}

std::uint32_t Network::leaf_of(std::uint32_t pe, std::uint32_t nic) const {
  const std::uint32_t group = setup_.node_of(pe) / setup_.leaves.nodes;
  if (!setup_.leaves.is_rail_optimized) {
    return group;
  }
  const std::uint32_t nics = *std::ranges::max_element(setup_.nics);
  return (group * setup_.pes_per_node + pe % setup_.pes_per_node) * nics + nic;
}

std::uint64_t Network::connection_of(const Flight& flight) const {
  // In order, all pieces of a NIC are as those of one connection.
  return setup_.nic.is_fair ? nic_index(flight.dest, flight.remote) : 0;
}

void Network::send(Flight& flight) {
  const NicShape& nic = setup_.nic;
  flight.cell_bytes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      flight.unsent / nic.cells_max, nic.cell_bytes_min, nic.cell_bytes_max));
  const std::uint32_t ours = nic_index(flight.source, flight.local);
  if (is_dead(ours)) {
    lose(flight);
    return;
  }
  Tx& tx = tx_[ours];
  const auto [tail, is_new] = tx.tails.try_emplace(connection_of(flight), &flight);
  if (is_new) {
    tx.heads.push_back(&flight);
  } else {
    tail->second->next = &flight;
    tail->second = &flight;
  }
  if (!tx.is_busy) {
    start_tx(ours);
  }
}

// The first piece of the connection in turn is sent or lost.
void Network::drop_head(Tx& tx) {
  Flight* const flight = tx.heads.front();
  tx.heads.pop_front();
  if (flight->next == nullptr) {
    tx.tails.erase(connection_of(*flight));
  } else if (setup_.nic.is_fair) {
    tx.heads.push_back(flight->next);
  } else {
    tx.heads.push_front(flight->next);
  }
}

void Network::start_tx(std::uint32_t nic) {
  Tx& tx = tx_[nic];
  while (!tx.heads.empty() && tx.heads.front()->is_lost) {
    drop_head(tx);
  }
  tx.is_busy = !tx.heads.empty();
  if (!tx.is_busy) {
    return;
  }
  Flight& flight = *tx.heads.front();
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(flight.unsent, flight.cell_bytes));
  double busy_ns = bytes * tx.ns_per_byte;
  if (!flight.has_begun) {
    flight.has_begun = true;
    busy_ns += setup_.nic.message_ns;
  }
  tx.work.busy_ns += busy_ns;
  events_.add(events_.now_ns() + busy_ns,
              {.flight = &flight, .index = nic, .bytes = bytes, .kind = EventKind::Sent});
}

void Network::on_sent(const Event& event) {
  Tx& tx = tx_[event.index];
  if (tx.is_dead) {
    return;
  }
  Flight& flight = *event.flight;
  tx.work.bytes += event.bytes;
  tx_moments_.add(event.index, event.bytes, events_.now_ns());
  flight.unsent -= event.bytes;
  if (flight.unsent == 0) {
    drop_head(tx);
  } else if (setup_.nic.is_fair) {
    tx.heads.pop_front();
    tx.heads.push_back(&flight);
  }
  forward({&flight, event.bytes}, 0);
  start_tx(event.index);
}

// Behind the sending NIC (hop 0), its leaf's link to the others (1), the link to the target's leaf
// (2).
void Network::forward(const Cell& cell, std::uint8_t hop) {
  Flight& flight = *cell.flight;
  if (!up_.empty() && hop < kDownHop) {
    const std::uint32_t from = leaf_of(flight.source, flight.local);
    const std::uint32_t to = leaf_of(flight.dest, flight.remote);
    if (from != to) {
      Link& link = hop == 0 ? up_[from] : down_[to];
      Work& work = hop == 0 ? up_work_[from] : down_work_[to];
      const double busy_ns = cell.bytes * link.ns_per_byte;
      link.free_ns = std::max(link.free_ns, events_.now_ns()) + busy_ns;
      work.bytes += cell.bytes;
      work.busy_ns += busy_ns;
      events_.add(link.free_ns, {.flight = &flight,
                                 .bytes = cell.bytes,
                                 .kind = EventKind::Passed,
                                 .hop = hop == 0 ? kUpHop : kDownHop});
      return;
    }
  }
  const std::uint32_t theirs = nic_index(flight.dest, flight.remote);
  if (is_dead(theirs)) {
    lose(flight);
    return;
  }
  Rx& rx = rx_[theirs];
  rx.cells.push_back(cell);
  rx.queued += cell.bytes;
  rx_queue_max_ = std::max(rx_queue_max_, rx.queued);
  if (!rx.is_busy) {
    start_rx(theirs);
  }
}

void Network::start_rx(std::uint32_t nic) {
  Rx& rx = rx_[nic];
  rx.is_busy = !rx.cells.empty();
  if (!rx.is_busy) {
    return;
  }
  const Cell& cell = rx.cells.front();
  // A cell of each PE of a node is no overload: they all begin with the same peer.
  const bool is_overloaded = static_cast<double>(rx.queued) > setup_.nic.overload_bytes &&
                             rx.cells.size() > setup_.pes_per_node;
  const double busy_ns =
      cell.bytes * rx.ns_per_byte / (is_overloaded ? setup_.nic.overload_rate : 1);
  rx.work.busy_ns += busy_ns;
  events_.add(
      events_.now_ns() + busy_ns,
      {.flight = cell.flight, .index = nic, .bytes = cell.bytes, .kind = EventKind::Received});
}

void Network::on_received(const Event& event) {
  Rx& rx = rx_[event.index];
  if (is_dead(event.index)) {
    return;
  }
  rx.cells.pop_front();
  rx.queued -= event.bytes;
  rx.work.bytes += event.bytes;
  rx_moments_.add(event.index, event.bytes, events_.now_ns());
  Flight& flight = *event.flight;
  flight.unreceived -= event.bytes;
  if (flight.unreceived == 0 && !flight.is_lost) {
    events_.add(events_.now_ns() + setup_.nic.latency_ns,
                {.flight = &flight, .kind = EventKind::Completed});
  }
  start_rx(event.index);
}

void Network::lose(Flight& flight) {
  if (!flight.is_lost) {
    flight.is_lost = true;
    events_.add(events_.now_ns() + setup_.nic.fault_timeout_ns,
                {.flight = &flight, .kind = EventKind::Failed});
  }
}

// Everything in its queues is lost, in both directions.
void Network::on_nic_fails(std::uint32_t nic) {
  Tx& tx = tx_[nic];
  tx.is_dead = true;
  tx.is_busy = false;
  for (Flight* head : tx.heads) {
    for (Flight* flight = head; flight != nullptr; flight = flight->next) {
      lose(*flight);
    }
  }
  tx.heads.clear();
  tx.tails.clear();
  for (const Cell& cell : rx_[nic].cells) {
    lose(*cell.flight);
  }
  rx_[nic].cells.clear();
}

void Network::on_event(const Event& event) {
  switch (event.kind) {
    case EventKind::Sent:
      on_sent(event);
      break;
    case EventKind::Passed:
      forward({event.flight, event.bytes}, event.hop);
      break;
    case EventKind::Received:
      on_received(event);
      break;
    case EventKind::NicFails:
      on_nic_fails(event.index);
      break;
    case EventKind::Post:
    case EventKind::Completed:
    case EventKind::Failed:
    case EventKind::Retry:
      break;
  }
}

}  // namespace weft::sim
