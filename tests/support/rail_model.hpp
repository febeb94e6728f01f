// Senders that plan with the real Links, RailSelector and planner, over NICs that carry so many bytes in a tick: what a
// policy costs in time, without a network. One thread; a run of eight PEs takes milliseconds.
//
// Each PE posts its steps up to a quiet, waits until all that it posted is complete, meets the others,
// and goes on. A NIC sends what its queue holds, either in order (Discipline::InOrder: one piece at a time)
// or a cell of each connection in turn (Discipline::Fair); what it receives it takes in the order of arrival. The network in between is never the limit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/rail_selector.hpp"

namespace weft::transport::rails {

enum class Discipline : std::uint8_t { InOrder, Fair };

enum class Traffic : std::uint8_t { AllToAll, Pairs, Incast, Random };

struct ModelOptions {
  const Policy* policy = find_policy("balanced");
  std::uint32_t hosts = 2;
  std::uint32_t pes_per_host = 4;
  std::vector<std::uint32_t> nics = {4};  // of PE i: nics[i % size]
  Traffic traffic = Traffic::AllToAll;
  std::uint64_t bytes = 64U << 10U;  // of a message
  bool alternates_signal = false;    // 8 bytes after each message
  bool pareto = false;               // sizes from bytes / 64 to bytes, most of them small
  std::uint32_t count_per_step = 1;  // messages to one peer in a step
  std::uint32_t steps = 1;           // between two quiets
  std::uint32_t windows = 12;        // quiets that count; half as many go before
  Discipline discipline = Discipline::Fair;
  std::uint32_t slow_nic_of_pe = UINT32_MAX;  // NIC 0 of this PE has half the rate
  std::uint64_t seed = 1;
};

struct ModelResult {
  double share = 0;  // of the time that the busiest PE's NICs need if they share its bytes
  std::uint64_t rx_queue_max = 0;  // bytes that waited at one receiving NIC
  double rx_max_over_mean = 0;     // of the whole run, worst PE
};

class RailModel {
 public:
  explicit RailModel(ModelOptions options) : options_(std::move(options)), random_(options_.seed) {
    pe_count_ = options_.hosts * options_.pes_per_host;
    for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
      pes_.push_back(std::make_unique<ModelPe>());
      build(*pes_.back(), pe);
    }
  }

  ModelResult run() {
    std::uint64_t busy_ticks = 0;
    double needed_ticks = 0;
    for (std::uint32_t window = 0; window < options_.windows * 3 / 2; ++window) {
      const std::uint64_t begin = tick_;
      const double needed = post_window();
      finish_window();
      if (window >= options_.windows / 2) {
        busy_ticks += tick_ - begin;
        needed_ticks += needed;
      }
    }
    return {.share = needed_ticks / static_cast<double>(busy_ticks),
            .rx_queue_max = rx_queue_max_,
            .rx_max_over_mean = worst_rx()};
  }

  // Rails of all PEs that are taken for slow by their own PE.
  [[nodiscard]] std::size_t slow_rails() const {
    std::size_t count = 0;
    for (const auto& pe : pes_) {
      count += static_cast<std::size_t>(std::ranges::count_if(
          pe->state.rails, [](const LocalRail& rail) { return rail.load.weight.is_slow(); }));
    }
    return count;
  }

 private:
  static constexpr std::uint64_t kCell = 4096;
  static constexpr std::uint64_t kTickNs = 1'000'000;
  static constexpr std::uint64_t kLatencyTicks = 1;

  struct Message {
    std::uint64_t bytes = 0;
    std::uint64_t planned = 0;
    std::uint64_t number = 0;
    std::uint32_t pieces = 0;
    bool is_planned = false;
    Lane lane;
  };

  struct Flight : Posted {
    Flight() : Posted(PostedKind::Piece) {}

    std::uint32_t source = 0;
    std::uint32_t dest = 0;
    std::uint32_t remote = 0;
    std::uint64_t unsent = 0;
    std::uint64_t unreceived = 0;
    std::uint64_t done_tick = 0;
    std::shared_ptr<Message> message;
  };

  struct Cell {
    std::shared_ptr<Flight> flight;
    std::uint64_t bytes = 0;
  };

  struct Nic {
    std::deque<std::shared_ptr<Flight>> tx;
    std::deque<Cell> rx;
    std::uint64_t rx_queued = 0;
    std::uint64_t received = 0;
    std::int64_t tx_credit = 0;
    std::int64_t rx_credit = 0;
    std::uint32_t slowness = 1;
  };

  struct ModelPe {
    State state;
    std::unique_ptr<Links> links;
    std::unique_ptr<RailSelector> selector;
    std::vector<Nic> nics;
    std::vector<std::deque<std::shared_ptr<Message>>> queues;  // by peer
    std::vector<RailCounters> rail_counters;
    std::vector<PeerRailCounters> peer_counters;
    std::uint64_t unfinished = 0;
    std::uint32_t told_version = 0;
  };

  [[nodiscard]] std::uint32_t nics_of(std::uint32_t pe) const {
    return options_.nics[pe % options_.nics.size()];
  }

  [[nodiscard]] bool is_near(std::uint32_t a, std::uint32_t b) const {
    return a / options_.pes_per_host == b / options_.pes_per_host;
  }

  void build(ModelPe& self, std::uint32_t me) {
    State& state = self.state;
    state.options.policy = options_.policy;
    state.me = Pe(me);
    state.pe_count = pe_count_;
    state.now_ns = kTickNs;
    self.nics.resize(nics_of(me));
    self.nics[0].slowness = me == options_.slow_nic_of_pe ? 2 : 1;
    state.rails.resize(nics_of(me));
    self.queues.resize(pe_count_);
    state.peers.resize(pe_count_);
    for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
      if (!is_near(me, pe)) {
        state.peers[pe] = make_peer(state, pe);
      }
    }
    state.near_count = options_.pes_per_host;
    self.links = std::make_unique<Links>(state);
    self.selector = std::make_unique<RailSelector>(state, self.links->rates());
    self.selector->place_senders();
    constexpr std::uint32_t kStride = 8;
    self.rail_counters.resize(state.rails.size());
    self.peer_counters.resize(std::size_t{pe_count_} * kStride);
    self.links->count_in(
        {.rails = self.rail_counters, .peers = self.peer_counters, .peer_rail_stride = kStride});
  }

  std::unique_ptr<Peer> make_peer(const State& state, std::uint32_t pe) const {
    auto peer = std::make_unique<Peer>();
    peer->pe = Pe(pe);
    peer->rails.resize(nics_of(pe));
    for (std::uint32_t local = 0; local < state.rails.size(); ++local) {
      for (std::uint32_t remote = 0; remote < peer->rails.size(); ++remote) {
        peer->links.push_back(
            {.local = RailIndex(local), .remote = RailIndex(remote), .address = {}, .regions = {}});
      }
      peer->masks.push_back((LinkMask{1} << peer->rails.size()) - 1);
      peer->outstanding_bytes.push_back(0);
    }
    return peer;
  }

  std::vector<std::uint32_t> targets_of(std::uint32_t me) {
    std::vector<std::uint32_t> targets;
    switch (options_.traffic) {
      case Traffic::AllToAll:
        for (std::uint32_t k = 1; k < pe_count_; ++k) {
          targets.push_back((me + k) % pe_count_);
        }
        break;
      case Traffic::Pairs:
        targets.push_back((me + pe_count_ / 2) % pe_count_);
        break;
      case Traffic::Incast:
        targets.push_back(0);
        break;
      case Traffic::Random:
        targets.push_back((me + 1 + static_cast<std::uint32_t>(random_() % (pe_count_ - 1))) %
                          pe_count_);
        break;
    }
    std::erase_if(targets, [&](std::uint32_t pe) { return is_near(me, pe); });
    return targets;
  }

  std::uint64_t draw_size() {
    if (!options_.pareto) {
      return options_.bytes;
    }
    const double uniform = (static_cast<double>(random_() % 1'000'000) + 1) / 1e6;
    const double size = static_cast<double>(options_.bytes) / 64 / std::pow(uniform, 1 / 1.2);
    return std::min(options_.bytes, static_cast<std::uint64_t>(size));
  }

  // Everybody's messages up to the next quiet; returns the ticks that it takes at best.
  double post_window() {
    for (auto& pe : pes_) {
      ++pe->state.caller_polls;
    }
    std::vector<double> sent(pe_count_);
    std::vector<double> received(pe_count_);
    for (std::uint32_t me = 0; me < pe_count_; ++me) {
      for (std::uint32_t step = 0; step < options_.steps; ++step) {
        const auto targets = targets_of(me);
        for (std::uint32_t i = 0; i < options_.count_per_step; ++i) {
          for (const std::uint32_t peer : targets) {
            const std::uint64_t bytes = draw_size();
            sent[me] += static_cast<double>(bytes);
            received[peer] += static_cast<double>(bytes);
            accept(me, peer, bytes);
            if (options_.alternates_signal) {
              accept(me, peer, 8);
            }
          }
        }
      }
    }
    double needed = 0;
    for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
      double rate = 0;
      for (const Nic& nic : pes_[pe]->nics) {
        rate += static_cast<double>(kCell) / nic.slowness;
      }
      needed = std::max({needed, sent[pe] / rate, received[pe] / rate});
    }
    return needed;
  }

  void accept(std::uint32_t me, std::uint32_t peer, std::uint64_t bytes) {
    ModelPe& self = *pes_[me];
    auto message = std::make_shared<Message>();
    message->bytes = bytes;
    message->number = self.state.operation_count++;
    ++self.unfinished;
    self.selector->on_accepted(Direction::Write, bytes);
    self.queues[peer].push_back(message);
    if (self.queues[peer].size() == 1) {
      dispatch(me, peer);
    }
  }

  // The message at the head of the queue; false if it has to wait.
  bool dispatch(std::uint32_t me, std::uint32_t to) {
    ModelPe& self = *pes_[me];
    Peer& peer = *self.state.peers[to];
    auto message = self.queues[to].front();
    while (message->planned < message->bytes) {
      const auto piece = self.selector->choose(
          peer, Direction::Write,
          {.total = message->bytes, .offset = message->planned, .lane = message->lane},
          message->number);
      if (!piece) {
        self.selector->wait_for_room(
            peer, Direction::Write,
            {.total = message->bytes, .offset = message->planned, .lane = message->lane});
        return false;
      }
      message->lane = piece->lane;
      post(me, to, *piece, message);
    }
    message->is_planned = true;
    self.queues[to].pop_front();
    return true;
  }

  // The oldest message that can go, as long as there is one.
  void dispatch_all(std::uint32_t me) {
    ModelPe& self = *pes_[me];
    std::vector<std::uint32_t> waiting;
    self.selector->look_again();
    for (std::uint32_t peer = 0; peer < pe_count_; ++peer) {
      if (!self.queues[peer].empty()) {
        waiting.push_back(peer);
      }
    }
    const auto age = [&](std::uint32_t peer) { return self.queues[peer].front()->number; };
    while (!waiting.empty()) {
      const auto oldest = std::ranges::min_element(waiting, {}, age);
      if (!dispatch(me, *oldest) || self.queues[*oldest].empty()) {
        waiting.erase(oldest);
      }
    }
  }

  void post(std::uint32_t me,
            std::uint32_t to,
            const Piece& piece,
            const std::shared_ptr<Message>& message) {
    ModelPe& self = *pes_[me];
    Peer& peer = *self.state.peers[to];
    auto flight = std::make_shared<Flight>();
    flight->source = me;
    flight->dest = to;
    flight->remote = piece.remote.value;
    flight->unsent = piece.bytes;
    flight->unreceived = piece.bytes;
    flight->message = message;
    message->planned += piece.bytes;
    ++message->pieces;
    self.links->on_posted(peer, peer.link(piece.local, piece.remote), Direction::Write, piece.bytes,
                          *flight);
    self.selector->on_planned(Direction::Write, message->bytes, piece.bytes);
    self.nics[piece.local.value].tx.push_back(flight);
  }

  [[nodiscard]] bool is_busy() const {
    return std::ranges::any_of(pes_, [](const auto& pe) { return pe->unfinished > 0; });
  }

  void finish_window() {
    while (is_busy()) {
      ++tick_;
      for (auto& pe : pes_) {
        pe->state.now_ns = tick_ * kTickNs;
        for (Nic& nic : pe->nics) {
          transmit(nic);
        }
      }
      for (auto& pe : pes_) {
        for (Nic& nic : pe->nics) {
          receive(nic);
        }
      }
      complete();
      if (tick_ % 25 == 0) {
        for (auto& pe : pes_) {
          pe->links->rates().judge_long_bursts();
          tell_rates(*pe);
        }
      }
    }
  }

  void tell_rates(ModelPe& self) {
    if (self.told_version == self.state.rates_version) {
      return;
    }
    self.told_version = self.state.rates_version;
    for (auto& other : pes_) {
      Peer* const to_us = other->state.peers[self.state.me.value].get();
      if (to_us != nullptr) {
        other->links->rates().on_told(*to_us, self.links->rates().frame());
      }
    }
  }

  void transmit(Nic& nic) {
    const auto gain = static_cast<std::int64_t>(kCell / nic.slowness);
    nic.tx_credit = std::min<std::int64_t>(nic.tx_credit + gain, kCell);
    while (!nic.tx.empty() && nic.tx_credit > 0) {
      auto flight = nic.tx.front();
      const std::uint64_t bytes = std::min(flight->unsent, kCell);
      nic.tx_credit -= static_cast<std::int64_t>(bytes);
      flight->unsent -= bytes;
      Nic& there = pes_[flight->dest]->nics[flight->remote];
      there.rx.push_back({flight, bytes});
      there.rx_queued += bytes;
      put_back(nic);
    }
  }

  // The piece at the head has sent a cell: the next one is of the same piece, or of the next connection.
  void put_back(Nic& nic) const {
    const auto flight = nic.tx.front();
    const auto is_of_connection = [&](const auto& other) {
      return other->dest == flight->dest && other->remote == flight->remote;
    };
    if (flight->unsent == 0) {
      nic.tx.pop_front();
    }
    if (options_.discipline == Discipline::Fair) {
      std::ranges::stable_partition(nic.tx, std::not_fn(is_of_connection));
    }
  }

  void receive(Nic& nic) {
    rx_queue_max_ = std::max(rx_queue_max_, nic.rx_queued);
    const auto gain = static_cast<std::int64_t>(kCell / nic.slowness);
    nic.rx_credit = std::min<std::int64_t>(nic.rx_credit + gain, kCell);
    while (!nic.rx.empty() && nic.rx_credit > 0) {
      const Cell cell = nic.rx.front();
      nic.rx.pop_front();
      nic.rx_credit -= static_cast<std::int64_t>(cell.bytes);
      nic.rx_queued -= cell.bytes;
      nic.received += cell.bytes;
      cell.flight->unreceived -= cell.bytes;
      if (cell.flight->unreceived == 0) {
        cell.flight->done_tick = tick_ + kLatencyTicks;
        arrived_.push_back(cell.flight);
      }
    }
  }

  void complete() {
    while (!arrived_.empty() && arrived_.front()->done_tick <= tick_) {
      const auto flight = arrived_.front();
      arrived_.pop_front();
      ModelPe& self = *pes_[flight->source];
      self.links->on_completed(*self.state.peers[flight->dest], *flight);
      Message& message = *flight->message;
      if (--message.pieces == 0 && message.is_planned) {
        --self.unfinished;
        self.selector->on_finished(Direction::Write);
      }
      dispatch_all(flight->source);
    }
  }

  [[nodiscard]] double worst_rx() const {
    double worst = 1;
    for (const auto& pe : pes_) {
      std::uint64_t most = 0;
      std::uint64_t sum = 0;
      for (const Nic& nic : pe->nics) {
        most = std::max(most, nic.received);
        sum += nic.received;
      }
      if (sum > 0) {
        worst = std::max(worst, static_cast<double>(most) * static_cast<double>(pe->nics.size()) /
                                    static_cast<double>(sum));
      }
    }
    return worst;
  }

  ModelOptions options_;
  std::mt19937_64 random_;
  std::uint32_t pe_count_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t rx_queue_max_ = 0;
  std::vector<std::unique_ptr<ModelPe>> pes_;
  std::deque<std::shared_ptr<Flight>> arrived_;
};

}  // namespace weft::transport::rails
