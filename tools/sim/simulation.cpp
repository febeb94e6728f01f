#include "tools/sim/simulation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace weft::sim {
namespace {

constexpr double kTickNs = 25e6;
// Intervals of a window at its best time, for what NICs carry at each moment.
constexpr double kIntervalsOfWindow = 16;
// An interval with fewer cells would show what is normal: a NIC sends one after the other.
constexpr double kCellsOfInterval = 8;
// Of a longer run, p99 is that of the first messages.
constexpr std::size_t kLatenciesMax = 4'000'000;

Work minus(const Work& now, const Work& before) {
  return {.bytes = now.bytes - before.bytes, .busy_ns = now.busy_ns - before.busy_ns};
}

}  // namespace

Simulation::Simulation(Setup setup)
    : setup_(std::move(setup)),
      network_((check(setup_), setup_), events_),
      traffic_(setup_),
      postings_(setup_.pe_count()),
      next_tick_ns_(kTickNs) {
  const Site site{.setup = setup_, .events = events_, .network = network_, .flights = flights_};
  if (setup_.library == Library::Weft) {
    std::vector<std::vector<std::uint32_t>> peers(setup_.pe_count());
    for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
      peers[pe] = traffic_.peers_of(pe);
    }
    senders_ = make_weft_senders(site, peers);
    return;
  }
  for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
    senders_.push_back(make_counting_sender(site, pe));
  }
}

Outcome Simulation::run() {
  double used_ns = 0;
  double needed_ns = 0;
  for (std::uint32_t window = 0; window < setup_.warm_up + setup_.windows; ++window) {
    if (window == setup_.warm_up) {
      keep_work();
      fail_nics();
    }
    const double begin_ns = events_.now_ns();
    const double needed = begin_window(window >= setup_.warm_up);
    finish_window();
    if (window >= setup_.warm_up) {
      used_ns += last_done_ns_ - begin_ns;
      needed_ns += needed;
    }
  }
  Outcome outcome{.window_ns = used_ns / setup_.windows,
                  .window_bytes = counted_bytes_ / setup_.windows,
                  .p99_ns = p99(),
                  .share = used_ns > 0 ? needed_ns / used_ns : 1,
                  .tx_max_over_mean = worst(sent_before_, true),
                  .rx_max_over_mean = worst(received_before_, false),
                  .tx_moment = network_.tx_moments().max_over_mean(),
                  .rx_moment = network_.rx_moments().max_over_mean(),
                  .rx_queue_max = network_.rx_queue_max(),
                  .messages = message_count_,
                  .events = events_.count(),
                  .limit = find_limit(used_ns)};
  for (const auto& sender : senders_) {
    outcome.slow_rails += sender->slow_rails();
    outcome.links_down += sender->links_down();
  }
  return outcome;
}

// Returns the time that the window takes at best.
double Simulation::begin_window(bool is_counted) {
  is_counted_ = is_counted;
  unfinished_ = 0;
  last_done_ns_ = events_.now_ns();
  std::size_t most = 0;
  for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
    senders_[pe]->begin_window();
    const double start_ns = events_.now_ns() + traffic_.delay_ns();
    postings_[pe] = {.posts = traffic_.posts_of(pe)};
    unfinished_ += postings_[pe].posts.size();
    most = std::max(most, postings_[pe].posts.size());
    if (!postings_[pe].posts.empty()) {
      events_.add(start_ns + setup_.nic.proxy_ns, {.index = pe, .kind = EventKind::Post});
    }
  }
  proxy_ns_ += is_counted ? static_cast<double>(most) * setup_.nic.proxy_ns : 0;
  const double needed = needed_ns();
  const double cells_ns = kCellsOfInterval * setup_.nic.cell_bytes_min / setup_.nic.bytes_per_ns;
  const double interval_ns = is_counted ? std::max(needed / kIntervalsOfWindow, cells_ns) : 0;
  network_.tx_moments().begin(events_.now_ns(), interval_ns);
  network_.rx_moments().begin(events_.now_ns(), interval_ns);
  return needed;
}

double Simulation::needed_ns() const {
  std::vector<double> sent(setup_.pe_count());
  std::vector<double> received(setup_.pe_count());
  for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
    for (const Post& post : postings_[pe].posts) {
      sent[pe] += static_cast<double>(post.bytes);
      received[post.peer] += static_cast<double>(post.bytes);
    }
  }
  double needed = 0;
  for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
    double rate = 0;
    for (std::uint32_t nic = 0; nic < setup_.nics_of(pe); ++nic) {
      rate += network_.rate(network_.nic_index(pe, nic));
    }
    needed = std::max({needed, sent[pe] / rate, received[pe] / rate});
  }
  return needed;
}

void Simulation::fail_nics() {
  for (const FailedNic& failed : setup_.failed) {
    for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
      if (failed.pe.value_or(pe) == pe && failed.nic < setup_.nics_of(pe)) {
        events_.add(events_.now_ns() + failed.at_ns,
                    {.index = network_.nic_index(pe, failed.nic), .kind = EventKind::NicFails});
      }
    }
  }
}

void Simulation::finish_window() {
  // After as many ticks without an event, nothing will happen any more: probes come more often.
  constexpr int kIdleTicksMax = 100;
  int idle_ticks = 0;
  while (unfinished_ > 0) {
    if (!events_.is_empty()) {
      idle_ticks = 0;
      run_ticks_until(events_.next_ns());
      handle(events_.take());
    } else if (++idle_ticks > kIdleTicksMax) {
      report_deadlock();
    } else {
      run_ticks_until(next_tick_ns_);
    }
  }
}

void Simulation::run_ticks_until(double ns) {
  while (next_tick_ns_ <= ns) {
    events_.advance(next_tick_ns_);
    next_tick_ns_ += kTickNs;
    for (const auto& sender : senders_) {
      sender->tick();
    }
    if (!events_.is_empty()) {
      ns = std::min(ns, events_.next_ns());
    }
  }
}

void Simulation::report_deadlock() const {
  for (const auto& sender : senders_) {
    if (const std::string text = sender->waits_for(); !text.empty()) {
      fail("the simulated job does not end: {}", text);
    }
  }
  fail("the simulated job does not end: {} operations are incomplete", unfinished_);
}

void Simulation::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::Post:
      on_post(event.index);
      break;
    case EventKind::Completed:
      on_completed(*event.flight);
      break;
    case EventKind::Failed:
      // The network may still hold cells of it, so it is not reused.
      senders_[event.flight->source]->on_failed(*event.flight);
      break;
    case EventKind::Retry:
      senders_[event.index]->on_retry();
      break;
    case EventKind::Sent:
    case EventKind::Passed:
    case EventKind::Received:
    case EventKind::NicFails:
      network_.on_event(event);
      break;
  }
}

void Simulation::on_post(std::uint32_t pe) {
  Posting& posting = postings_[pe];
  do {
    const Post& post = posting.posts[posting.next++];
    Message* const message = messages_.take();
    message->bytes = post.bytes;
    message->posted_ns = events_.now_ns();
    senders_[pe]->accept(post.peer, *message);
  } while (setup_.nic.proxy_ns <= 0 && posting.next < posting.posts.size());
  if (posting.next < posting.posts.size()) {
    events_.add(events_.now_ns() + setup_.nic.proxy_ns, {.index = pe, .kind = EventKind::Post});
  }
}

void Simulation::on_completed(Flight& flight) {
  Message* const message = flight.message;
  if (senders_[flight.source]->on_completed(flight)) {
    --unfinished_;
    last_done_ns_ = events_.now_ns();
    if (is_counted_) {
      ++message_count_;
      counted_bytes_ += static_cast<double>(message->bytes);
      if (latencies_ns_.size() < kLatenciesMax) {
        latencies_ns_.push_back(static_cast<float>(events_.now_ns() - message->posted_ns));
      }
    }
    messages_.give(message);
  }
  flights_.give(&flight);
}

void Simulation::keep_work() {
  for (std::uint32_t nic = 0; nic < network_.nic_count(); ++nic) {
    sent_before_.push_back(network_.sent(nic));
    received_before_.push_back(network_.received(nic));
  }
  up_before_ = network_.uplinks();
  down_before_ = network_.downlinks();
}

// Max/mean of the bytes of a PE's NICs, of the PE where it is largest.
double Simulation::worst(const std::vector<Work>& before, bool is_tx) const {
  double worst = 1;
  for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
    std::uint64_t most = 0;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < setup_.nics_of(pe); ++i) {
      const std::uint32_t nic = network_.nic_index(pe, i);
      const Work& now = is_tx ? network_.sent(nic) : network_.received(nic);
      const std::uint64_t bytes = minus(now, before[nic]).bytes;
      most = std::max(most, bytes);
      sum += bytes;
    }
    if (sum > 0) {
      worst = std::max(worst,
                       static_cast<double>(most) * setup_.nics_of(pe) / static_cast<double>(sum));
    }
  }
  return worst;
}

void Simulation::consider_nics(Limit& limit, double measured_ns, bool is_tx) {
  for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
    double sum = 0;
    Limit most{.part = is_tx ? Part::Tx : Part::Rx, .pe = pe};
    for (std::uint32_t i = 0; i < setup_.nics_of(pe); ++i) {
      const std::uint32_t nic = network_.nic_index(pe, i);
      const Work work = is_tx ? minus(network_.sent(nic), sent_before_[nic])
                              : minus(network_.received(nic), received_before_[nic]);
      const double busy = work.busy_ns / measured_ns;
      sum += busy;
      if (busy > most.busy) {
        most.busy = busy;
        most.nic = i;
      }
    }
    const std::uint32_t others = setup_.nics_of(pe) - 1;
    most.others = others > 0 ? (sum - most.busy) / others : 0;
    if (most.busy > limit.busy) {
      limit = most;
    }
  }
}

Limit Simulation::find_limit(double measured_ns) {
  Limit limit;
  if (measured_ns <= 0) {
    return limit;
  }
  consider_nics(limit, measured_ns, true);
  consider_nics(limit, measured_ns, false);
  const auto consider = [&](Part part, double busy) {
    if (busy > limit.busy) {
      limit = {.part = part, .busy = busy};
    }
  };
  consider(Part::Proxy, proxy_ns_ / measured_ns);
  for (std::size_t i = 0; i < up_before_.size(); ++i) {
    consider(Part::Uplink, minus(network_.uplinks()[i], up_before_[i]).busy_ns / measured_ns);
    consider(Part::Downlink, minus(network_.downlinks()[i], down_before_[i]).busy_ns / measured_ns);
  }
  // One NIC at each moment, but not always the same one.
  constexpr double kMuch = 1.15;
  Moments& moments = network_.rx_moments();
  const bool is_in_turn = moments.max_over_mean() > kMuch * worst(received_before_, false);
  if (is_in_turn && moments.busiest() > kMuch * limit.busy) {
    limit = {.part = Part::RxInTurn, .busy = moments.busiest()};
  }
  return limit;
}

double Simulation::p99() {
  if (latencies_ns_.empty()) {
    return 0;
  }
  const auto place =
      latencies_ns_.begin() + static_cast<std::ptrdiff_t>((latencies_ns_.size() - 1) * 99 / 100);
  std::ranges::nth_element(latencies_ns_, place);
  return *place;
}

}  // namespace weft::sim
