// Weft's planner over the simulated network: Links, RailSelector, Rates, BurstMeter and the
// policies are the library's own. What stands here instead of RailsTransport, Sender and Recovery
// is their use: queues by peer, the oldest operation first, and after a failure what Recovery does
// (links of a suspected NIC go down, probes bring back those that work, pieces are sent again).
#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/rail_selector.hpp"
#include "tools/sim/sender.hpp"

namespace weft::sim {
namespace {

using transport::rails::Direction;
using transport::rails::LinkMask;
using transport::rails::Links;
using transport::rails::LocalRail;
using transport::rails::Peer;
using transport::rails::Piece;
using transport::rails::RailLink;
using transport::rails::RailSelector;
using transport::rails::Rest;
using transport::rails::State;

// The planner may compare times with 0, which means never.
constexpr std::uint64_t kClockStart = 1'000'000;
// Peers' rails in the table of counters, which all PEs share, as nobody reads it.
constexpr std::uint32_t kCounterStride = kRailCountMax;
// The round trips between a failure and the retransmission, in latencies: the target is asked to
// close the connection, and answers.
constexpr double kRecoveryLatencies = 2;

class WeftSender;

// What the PEs of a job share: each tells all others the rates of its rails.
struct Job {
  std::vector<WeftSender*> senders;
  std::vector<PeerRailCounters> counters;
};

class WeftSender : public Sender {
 public:
  WeftSender(const Site& site,
             std::shared_ptr<Job> job,
             std::uint32_t me,
             std::span<const std::uint32_t> peers)
      : site_(site),
        job_(std::move(job)),
        me_(me),
        links_(state_),
        selector_(state_, links_.rates()) {
    const Setup& setup = site_.setup;
    state_.options.policy = transport::rails::find_policy(setup.policy);
    state_.me = Pe(me);
    state_.pe_count = setup.pe_count();
    state_.near_count = setup.pes_per_node;
    state_.now_ns = kClockStart;
    state_.rails.resize(setup.nics_of(me));
    state_.peers.resize(setup.pe_count());
    std::vector<std::uint32_t> rail_counts(setup.pe_count());
    for (const std::uint32_t pe : peers) {
      state_.peers[pe] = make_peer(pe);
      state_.met.push_back(pe);
      selector_.place(*state_.peers[pe]);
      rail_counts[pe] = setup.nics_of(pe);
    }
    rail_counters_.resize(state_.rails.size());
    links_.count_in(
        {.rails = rail_counters_, .peers = job_->counters, .peer_rail_stride = kCounterStride},
        rail_counts);
  }

  void begin_window() override { ++state_.caller_polls; }

  void accept(std::uint32_t to, Message& message) override {
    set_clock();
    message.number = state_.operation_count++;
    selector_.on_accepted(Direction::Write, message.bytes);
    auto& queue = queues_[to];
    queue.push_back(&message);
    if (queue.size() == 1 && dispatch(to)) {
      queues_.erase(to);
    }
  }

  bool on_completed(Flight& flight) override {
    set_clock();
    Peer& peer = *state_.peers[flight.dest];
    links_.on_completed(peer, flight);
    const bool is_done = end_piece(flight);
    dispatch_all();
    tell();
    return is_done;
  }

  void on_failed(Flight& flight) override;

  void on_retry() override {
    set_clock();
    dispatch_all();
  }

  void tick() override;

  [[nodiscard]] std::uint32_t slow_rails() const override {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        state_.rails, [](const LocalRail& rail) { return rail.load.weight.is_slow(); }));
  }

  [[nodiscard]] std::uint32_t links_down() const override {
    std::uint32_t count = 0;
    for (const auto& peer : state_.peers) {
      count +=
          peer == nullptr
              ? 0U
              : static_cast<std::uint32_t>(std::ranges::count(peer->links, false, &RailLink::up));
    }
    return count;
  }

  [[nodiscard]] std::string waits_for() const override {
    if (queues_.empty() && lost_.empty()) {
      return {};
    }
    const std::uint32_t to = lost_.empty() ? queues_.begin()->first : lost_.front().to;
    return fmt::format("PE {} waits for a NIC to PE {}, and {} of their {} links are up", me_, to,
                       std::ranges::count(state_.peers[to]->links, true, &RailLink::up),
                       state_.peers[to]->links.size());
  }

 private:
  [[nodiscard]] std::unique_ptr<Peer> make_peer(std::uint32_t pe) const {
    auto peer = std::make_unique<Peer>();
    peer->pe = Pe(pe);
    peer->rails.resize(site_.setup.nics_of(pe));
    for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
      for (std::uint32_t remote = 0; remote < peer->rails.size(); ++remote) {
        RailLink& link = peer->links.emplace_back();
        link.local = RailIndex(local);
        link.remote = RailIndex(remote);
      }
      peer->masks.push_back((LinkMask{1} << peer->rails.size()) - 1);
      peer->outstanding_bytes.push_back(0);
    }
    return peer;
  }

  void set_clock() {
    state_.now_ns = kClockStart + static_cast<std::uint64_t>(site_.events.now_ns());
  }

  // True if its message is complete, too.
  bool end_piece(const Flight& flight) {
    Message& message = *flight.message;
    if (--message.pieces > 0 || !message.is_planned) {
      return false;
    }
    selector_.on_finished(Direction::Write);
    return true;
  }

  // The message at the head of the queue; false if it has to wait. True: the queue is one shorter.
  bool dispatch(std::uint32_t to) {
    Peer& peer = *state_.peers[to];
    auto& queue = queues_[to];
    Message& message = *queue.front();
    while (message.planned < message.bytes) {
      const Rest rest{.total = message.bytes, .offset = message.planned, .span = message.span};
      const auto piece = selector_.choose(peer, Direction::Write, rest, message.number);
      if (!piece) {
        selector_.wait_for_room(peer, Direction::Write, rest);
        return false;
      }
      message.span = piece->span;
      message.planned += piece->bytes;
      post(peer, *piece, message);
      selector_.on_planned(Direction::Write, message.bytes, piece->bytes);
    }
    message.is_planned = true;
    queue.pop_front();
    return true;
  }

  void post(Peer& peer, const Piece& piece, Message& message) {
    Flight& flight = *site_.flights.take();
    flight.source = me_;
    flight.dest = peer.pe.value;
    flight.local = piece.local.value;
    flight.remote = piece.remote.value;
    flight.unsent = flight.unreceived = piece.bytes;
    flight.message = &message;
    ++message.pieces;
    links_.on_posted(peer, peer.link(piece.local, piece.remote), Direction::Write, piece.bytes,
                     flight);
    site_.network.send(flight);
  }

  // The oldest message that can go, as long as there is one; lost pieces first.
  void dispatch_all() {
    resend();
    if (queues_.empty()) {
      return;
    }
    selector_.look_again();
    std::vector<std::pair<std::uint64_t, std::uint32_t>> oldest;
    for (const auto& [to, queue] : queues_) {
      oldest.emplace_back(queue.front()->number, to);
    }
    std::ranges::make_heap(oldest, std::greater<>());
    while (!oldest.empty()) {
      std::ranges::pop_heap(oldest, std::greater<>());
      const std::uint32_t to = oldest.back().second;
      oldest.pop_back();
      if (!dispatch(to)) {
        continue;
      }
      const auto queue = queues_.find(to);
      if (queue->second.empty()) {
        queues_.erase(queue);
      } else {
        oldest.emplace_back(queue->second.front()->number, to);
        std::ranges::push_heap(oldest, std::greater<>());
      }
    }
  }

  void resend();
  void tell();

  [[nodiscard]] bool is_dead(const Peer& peer, const RailLink& link) const {
    const Network& network = site_.network;
    return network.is_dead(network.nic_index(me_, link.local.value)) ||
           network.is_dead(network.nic_index(peer.pe.value, link.remote.value));
  }

  struct Lost {
    std::uint32_t to = 0;
    std::uint64_t bytes = 0;
    Message* message = nullptr;
    double retry_ns = 0;
  };

  Site site_;
  std::shared_ptr<Job> job_;
  std::uint32_t me_ = 0;
  State state_;
  Links links_;
  RailSelector selector_;
  std::vector<RailCounters> rail_counters_;
  std::map<std::uint32_t, std::deque<Message*>> queues_;  // by peer, none is empty
  std::deque<Lost> lost_;                                 // to be sent again, the oldest first
  std::uint32_t told_version_ = 0;
  bool has_failures_ = false;
};

// As Recovery: one of the two NICs may be gone, so all links of both but one are down until a probe
// says otherwise.
void WeftSender::on_failed(Flight& flight) {
  set_clock();
  has_failures_ = true;
  Peer& peer = *state_.peers[flight.dest];
  RailLink& dead = peer.links[flight.link];
  links_.on_failed(peer, flight);
  const bool is_news = dead.up;
  links_.set_down(peer, dead, "a NIC is dead");
  auto left = std::ranges::count_if(peer.links, &RailLink::up);
  for (RailLink& link : peer.links) {
    if (is_news && link.up && left > 1 &&
        (link.local == dead.local || link.remote == dead.remote)) {
      links_.set_down(peer, link, "it shares a NIC with a link that failed");
      link.probe_at_ns = state_.now_ns;
      --left;
    }
  }
  const double retry_ns = site_.events.now_ns() + kRecoveryLatencies * site_.setup.nic.latency_ns;
  lost_.push_back({flight.dest, flight.bytes, flight.message, retry_ns});
  site_.events.add(retry_ns, {.index = me_, .kind = EventKind::Retry});
}

void WeftSender::resend() {
  for (std::size_t i = lost_.size(); i > 0; --i) {
    Lost lost = lost_.front();
    lost_.pop_front();
    Peer& peer = *state_.peers[lost.to];
    std::uint64_t planned = 0;
    transport::rails::RailSpan span;
    while (planned < lost.bytes && lost.retry_ns <= site_.events.now_ns()) {
      const Rest rest{.total = lost.bytes, .offset = planned, .span = span};
      const auto piece = selector_.choose(peer, Direction::Write, rest, lost.message->number);
      if (!piece) {
        break;
      }
      span = piece->span;
      planned += piece->bytes;
      post(peer, *piece, *lost.message);
    }
    if (planned == lost.bytes) {
      --lost.message->pieces;  // of the piece that failed
    } else {
      lost.bytes -= planned;
      lost_.push_back(lost);
    }
  }
}

// What RailsTransport and Recovery do at a tick.
void WeftSender::tick() {
  set_clock();
  links_.rates().judge_long_bursts();
  tell();
  for (std::size_t i = 0; has_failures_ && i < state_.peers.size(); ++i) {
    Peer* const peer = state_.peers[i].get();
    for (std::size_t l = 0; peer != nullptr && l < peer->links.size(); ++l) {
      RailLink& link = peer->links[l];
      if (!link.up && state_.now_ns > link.probe_at_ns) {
        link.probe_at_ns = state_.now_ns + transport::rails::kProbeIntervalNs;
        if (!is_dead(*peer, link)) {
          links_.set_up(*peer, link);
        }
      }
    }
  }
  if (has_failures_) {
    dispatch_all();
  }
}

void WeftSender::tell() {
  if (told_version_ == state_.rates_version) {
    return;
  }
  told_version_ = state_.rates_version;
  for (WeftSender* other : job_->senders) {
    Peer* const us = other->state_.peers[me_].get();
    if (us != nullptr) {
      other->links_.rates().on_told(*us, links_.rates().frame());
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Sender>> make_weft_senders(
    const Site& site, const std::vector<std::vector<std::uint32_t>>& peers) {
  auto job = std::make_shared<Job>();
  const auto count = static_cast<std::uint32_t>(peers.size());
  job->counters.resize(std::size_t{count} * kCounterStride);
  std::vector<std::unique_ptr<Sender>> senders;
  for (std::uint32_t pe = 0; pe < count; ++pe) {
    auto sender = std::make_unique<WeftSender>(site, job, pe, peers[pe]);
    job->senders.push_back(sender.get());
    senders.push_back(std::move(sender));
  }
  return senders;
}

}  // namespace weft::sim
