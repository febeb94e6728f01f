// Senders that plan with the real Links, RailSelector and planner, over NICs that carry so many
// bytes in a tick: what a policy costs in time, without a network. One thread; a run of eight PEs
// takes milliseconds.
//
// Each PE posts its steps up to a quiet, waits until all that it posted is complete, meets the
// others, and goes on. A NIC sends what its queue holds, either in order (Discipline::InOrder: one
// piece at a time) or a cell of each connection in turn (Discipline::Fair); what it receives it
// takes in the order of arrival. The network in between is the limit only with leaf switches
// (ModelOptions::oversubscription).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/rail_selector.hpp"
#include "tests/support/rail_model_options.hpp"
#include "tools/balance/max_over_mean.hpp"

namespace weft::transport::rails {

class RailModel {
 public:
  explicit RailModel(ModelOptions options) : options_(std::move(options)), random_(options_.seed) {
    pe_count_ = options_.hosts * options_.pes_per_host;
    for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
      pes_.push_back(std::make_unique<ModelPe>());
      build(*pes_.back(), pe);
    }
    leaves_.resize(2 * std::size_t{options_.pes_per_host} * kRailCountMax);
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
  static constexpr std::uint64_t kLatencyTicks = 1;

  struct Message {
    std::uint64_t bytes = 0;
    std::uint64_t planned = 0;
    std::uint64_t number = 0;
    std::uint32_t pieces = 0;
    bool is_planned = false;
    RailSpan span;
  };

  struct Flight : Posted {
    Flight() : Posted(PostedKind::Piece) {}

    std::uint32_t source = 0;
    std::uint32_t dest = 0;
    std::uint32_t local = 0;
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

  // The links between a leaf switch and the others.
  struct Leaf {
    std::deque<Cell> up;
    std::deque<Cell> down;
    std::int64_t up_credit = 0;
    std::int64_t down_credit = 0;
  };

  struct Post {
    std::uint32_t peer = 0;
    std::uint64_t bytes = 0;
  };

  struct ModelPe {
    State state;
    std::unique_ptr<Links> links;
    std::unique_ptr<RailSelector> selector;
    std::vector<Nic> nics;
    std::vector<std::deque<std::shared_ptr<Message>>> queues;  // by peer
    std::vector<Post> to_post;                                 // in this window, from start_tick on
    std::uint64_t start_tick = 0;
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
    state.now_ns = options_.tick_ns;
    self.nics.resize(nics_of(me));
    const bool is_slow = options_.slow_nic_of_pe == kAllPes || options_.slow_nic_of_pe == me;
    self.nics[0].slowness = is_slow ? options_.slowness : 1;
    state.rails.resize(nics_of(me));
    self.queues.resize(pe_count_);
    state.peers.resize(pe_count_);
    state.near_count = options_.pes_per_host;
    self.links = std::make_unique<Links>(state);
    self.selector = std::make_unique<RailSelector>(state, self.links->rates());
    std::vector<std::uint32_t> rail_counts(pe_count_);
    for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
      if (!is_near(me, pe)) {
        state.peers[pe] = make_peer(state, pe);
        state.met.push_back(pe);
        self.selector->place(*state.peers[pe]);
        rail_counts[pe] = nics_of(pe);
      }
    }
    constexpr std::uint32_t kStride = 8;
    self.rail_counters.resize(state.rails.size());
    self.peer_counters.resize(std::size_t{pe_count_} * kStride);
    self.links->count_in(
        {.rails = self.rail_counters, .peers = self.peer_counters, .peer_rail_stride = kStride},
        rail_counts);
  }

  std::unique_ptr<Peer> make_peer(const State& state, std::uint32_t pe) const {
    auto peer = std::make_unique<Peer>();
    peer->pe = Pe(pe);
    peer->rails.resize(nics_of(pe));
    for (std::uint32_t local = 0; local < state.rails.size(); ++local) {
      for (std::uint32_t remote = 0; remote < peer->rails.size(); ++remote) {
        peer->links.push_back(
            {.local = RailIndex(local), .remote = RailIndex(remote), .address = {}});
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
    if (options_.shuffled_peers) {
      std::ranges::shuffle(targets, std::mt19937_64(options_.seed * 7919 + me));
    }
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
    std::vector<double> sent(pe_count_);
    std::vector<double> received(pe_count_);
    for (std::uint32_t me = 0; me < pe_count_; ++me) {
      ModelPe& self = *pes_[me];
      ++self.state.caller_polls;
      self.start_tick = tick_ + (options_.skew_ticks > 0 ? random_() % options_.skew_ticks : 0);
      for (std::uint32_t step = 0; step < options_.steps; ++step) {
        const auto targets = targets_of(me);
        for (std::uint32_t i = 0; i < options_.count_per_step; ++i) {
          for (const std::uint32_t peer : targets) {
            const std::uint64_t bytes = draw_size();
            sent[me] += static_cast<double>(bytes);
            received[peer] += static_cast<double>(bytes);
            self.to_post.push_back({peer, bytes});
            if (options_.alternates_signal) {
              self.to_post.push_back({peer, 8});
            }
          }
        }
      }
      begin_posting(me);
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

  void begin_posting(std::uint32_t me) {
    ModelPe& self = *pes_[me];
    if (tick_ < self.start_tick) {
      return;
    }
    for (const Post& post : std::exchange(self.to_post, {})) {
      accept(me, post.peer, post.bytes);
    }
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
          {.total = message->bytes, .offset = message->planned, .span = message->span},
          message->number);
      if (!piece) {
        self.selector->wait_for_room(
            peer, Direction::Write,
            {.total = message->bytes, .offset = message->planned, .span = message->span});
        return false;
      }
      message->span = piece->span;
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
    flight->local = piece.local.value;
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
    return std::ranges::any_of(
        pes_, [](const auto& pe) { return pe->unfinished > 0 || !pe->to_post.empty(); });
  }

  void finish_window() {
    while (is_busy()) {
      ++tick_;
      for (std::uint32_t me = 0; me < pe_count_; ++me) {
        ModelPe& self = *pes_[me];
        self.state.now_ns = tick_ * options_.tick_ns;
        begin_posting(me);
        for (Nic& nic : self.nics) {
          transmit(nic);
        }
      }
      pass_leaves();
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
      const std::size_t leaf = leaf_of(flight->source, flight->local);
      if (options_.oversubscription == 0 || leaf == leaf_of(flight->dest, flight->remote)) {
        arrive({flight, bytes});
      } else {
        leaves_[leaf].up.push_back({flight, bytes});
      }
      put_back(nic);
    }
  }

  void arrive(const Cell& cell) {
    Nic& there = pes_[cell.flight->dest]->nics[cell.flight->remote];
    there.rx.push_back(cell);
    there.rx_queued += cell.bytes;
  }

  [[nodiscard]] std::size_t leaf_of(std::uint32_t pe, std::uint32_t nic) const {
    const std::size_t half = pe / options_.pes_per_host * 2 / options_.hosts;
    if (!options_.has_rail_leaves) {
      return half;
    }
    return (half * options_.pes_per_host + pe % options_.pes_per_host) * kRailCountMax + nic;
  }

  void pass_leaves() {
    const auto pass = [&](std::deque<Cell>& queue, std::int64_t& credit, const auto& forward) {
      const std::uint64_t nics =
          (options_.hosts + 1) / 2 *
          (options_.has_rail_leaves ? 1 : std::uint64_t{options_.pes_per_host} * nics_of(0));
      const auto gain = static_cast<std::int64_t>(nics * kCell / options_.oversubscription);
      credit = std::min<std::int64_t>(credit + gain, gain);
      while (!queue.empty() && credit > 0) {
        const Cell cell = queue.front();
        queue.pop_front();
        credit -= static_cast<std::int64_t>(cell.bytes);
        forward(cell);
      }
    };
    if (options_.oversubscription == 0) {
      return;
    }
    for (Leaf& leaf : leaves_) {
      pass(leaf.up, leaf.up_credit, [&](const Cell& cell) {
        leaves_[leaf_of(cell.flight->dest, cell.flight->remote)].down.push_back(cell);
      });
      pass(leaf.down, leaf.down_credit, [&](const Cell& cell) { arrive(cell); });
    }
  }

  // The piece at the head has sent a cell: the next one is of the same piece, or of the next
  // connection.
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
      std::vector<std::uint64_t> received;
      for (const Nic& nic : pe->nics) {
        received.push_back(nic.received);
      }
      worst = std::max(worst, max_over_mean(received).value_or(1));
    }
    return worst;
  }

  ModelOptions options_;
  std::mt19937_64 random_;
  std::uint32_t pe_count_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t rx_queue_max_ = 0;
  std::vector<std::unique_ptr<ModelPe>> pes_;
  std::vector<Leaf> leaves_;
  std::deque<std::shared_ptr<Flight>> arrived_;
};

}  // namespace weft::transport::rails
