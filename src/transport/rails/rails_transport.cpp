#include "src/transport/rails/rails_transport.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/bootstrap/sha256.hpp"
#include "src/fabric/start.hpp"
#include "src/transport/rails/warm_up.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kTickNs = 25'000'000;
constexpr std::size_t kEventsPerPoll = 32;
constexpr int kPollsPerPass = 4;

static_assert(kBatchBytes <= fabric::kMessageBytesMax);

// A caller that posts small operations without a pause makes a pass itself after this many. So the
// progress thread need not take the lock each time, and the data that it guards stay in the
// caller's cache. Large operations are posted in pieces, for which the progress thread makes
// passes.
constexpr std::uint32_t kMessagesPerPass = 64;

// The progress thread holds the lock for one pass, some microseconds; to sleep and be woken takes
// longer.
std::unique_lock<std::mutex> lock_after_spinning(std::mutex& mutex, bool may_spin) noexcept {
  constexpr int kTries = 200;
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int i = 0; may_spin && i < kTries && !lock.owns_lock(); ++i) {
    cpu_pause();
    static_cast<void>(lock.try_lock());
  }
  if (!lock.owns_lock()) {
    lock.lock();
  }
  return lock;
}

}  // namespace

RailsTransport::RailsTransport(RailsOptions options,
                               Pe me,
                               Rails rails,
                               std::vector<std::span<std::byte>> regions,
                               std::uint64_t probe_offset) {
  state_.options = options;
  state_.me = me;
  state_.regions = std::move(regions);
  state_.probe_offset = probe_offset;
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) {
    fail("eventfd failed: {}; raise the limit of open files (ulimit -n)", errno_words(errno));
  }
  for (std::size_t i = 0; i < rails.size(); ++i) {
    wait_descriptors_.push_back({.fd = rails[i]->wait_descriptor(), .events = POLLIN});
    has_unpollable_rail_ = has_unpollable_rail_ || wait_descriptors_.back().fd < 0;
    state_.rails.push_back(
        {.trial = std::make_unique<fabric::TrialMemory>(), .rail = std::move(rails[i])});
  }
  fit_to_rails();
  if (state_.options.secret) {
    state_.nonce = bootstrap::random_digest();
  }
  wait_descriptors_.push_back({.fd = wake_, .events = POLLIN});
  state_.batches.on_new([this](Batch& batch) {
    for (const LocalRail& local : state_.rails) {
      local.rail->keep_registered(batch.memory);
    }
  });
  state_.copies.on_slab([this](std::span<std::byte> slab) {
    for (const LocalRail& local : state_.rails) {
      local.rail->keep_registered(slab);
    }
  });
  make_receives();
  for (std::uint32_t i = 0; i < state_.rails.size(); ++i) {
    LocalRail& local = state_.rails[i];
    fabric::try_claims(*local.rail, *local.trial);
    take_back_receive(local.trial->used_receive, i);
  }
}

RailsTransport::~RailsTransport() {
  // The endpoints go first: until they are closed, the provider uses the buffers posted to them.
  state_.rails.clear();
  ::close(wake_);
}

// Takes the smallest limits of all rails, because any message and any piece may be posted on any
// rail.
void RailsTransport::fit_to_rails() {
  for (const LocalRail& local : state_.rails) {
    const fabric::RailLimits& limits = local.rail->limits();
    state_.batch_bytes = std::min(state_.batch_bytes, limits.message_bytes_max);
    state_.registers_local = state_.registers_local || limits.registers_local;
    state_.rma_bytes_max = std::min<std::uint64_t>(state_.rma_bytes_max, limits.rma_bytes_max);
    if (limits.message_bytes_max < kBatchBytesMin || limits.rma_bytes_max == 0) {
      fail(
          "rail {} ({}) sends messages of up to {} bytes and writes of up to {} bytes; Weft needs "
          "{} "
          "and 1; choose other NICs (WEFT_NICS)",
          local.rail->nic(), local.rail->provider(), limits.message_bytes_max, limits.rma_bytes_max,
          kBatchBytesMin);
    }
  }
  state_.batch_bytes -= state_.options.secret ? kTagBytes : 0;
  state_.options.eager_bytes_max = std::min<std::uint64_t>(
      state_.options.eager_bytes_max,
      (state_.batch_bytes - sizeof(BatchHeader) - sizeof(Frame)) & ~std::uint64_t{7});
}

void RailsTransport::warm_up(std::span<const Pe> peers, std::uint32_t timeout_s) {
  const std::uint64_t start_ns = now_ns();
  std::unique_lock lock(mutex_);
  std::vector<Peer*> reached;
  for (const Pe pe : peers) {
    if (Peer* const peer = contacts_.find(pe); peer != nullptr) {
      reached.push_back(peer);
    }
  }
  WarmUp warm_up(state_, links_, recovery_, reached);
  state_.is_starting = !std::exchange(has_warmed_up_, true);
  for (std::uint64_t waited_ns = 0;
       warm_up.open_links(waited_ns) && waited_ns / 1'000'000'000 < timeout_s;
       waited_ns = now_ns() - start_ns) {
    warm_up.report(waited_ns, timeout_s);
    lock.unlock();
    if (!progress()) {
      wait_for_event(1000);
    }
    lock.lock();
  }
  state_.is_starting = false;
  warm_up.require_all();
}

Status RailsTransport::post(const Operation& operation) noexcept {
  const std::unique_lock lock = lock_after_spinning(mutex_, state_.options.may_spin);
  Peer* const peer = contacts_.find(operation.peer);
  if (peer == nullptr) {
    return Status::InvalidArgument;
  }
  const bool is_message = sender_.is_message(operation);
  if (!is_message) {  // for a message, the post of its batch reads the clock
    state_.now_ns = now_ns();
  }
  // relaxed: a poll that is seen late merges two bursts, or splits one.
  state_.caller_polls = AtomicRef(caller_polls_).load(std::memory_order_relaxed);
  AtomicRef(caller_posts_).store(caller_posts_ + 1, std::memory_order_relaxed);  // relaxed: a hint
  const Status status = sender_.accept(*peer, operation);
  if (status == Status::Again) {
    advance_locked();
  } else if (is_message && ++messages_since_pass_ == kMessagesPerPass) {
    messages_since_pass_ = 0;
    // relaxed: a hint.
    AtomicRef(caller_passes_).store(caller_passes_ + 1, std::memory_order_relaxed);
    advance_locked();
  }
  return status;
}

void RailsTransport::flush(Pe peer) noexcept {
  const std::unique_lock lock = lock_after_spinning(mutex_, state_.options.may_spin);
  if (Peer* target = state_.peers[peer.value].get();
      target != nullptr && target->status == Status::Ok) {
    state_.now_ns = now_ns();
    sender_.request_flush(*target);
    outbox_.post(*target, true);
  }
}

bool RailsTransport::progress() noexcept {
  // relaxed: the progress thread only asks whether the number has moved since it last looked.
  AtomicRef(caller_polls_).fetch_add(1, std::memory_order_relaxed);
  return advance();
}

CallerActivity RailsTransport::caller_activity() noexcept {
  // relaxed, all three: a stale value costs one more poll, or one wait of a millisecond.
  const std::uint64_t polls = AtomicRef(caller_polls_).load(std::memory_order_relaxed);
  const std::uint64_t posts = AtomicRef(caller_posts_).load(std::memory_order_relaxed);
  const std::uint64_t passes = AtomicRef(caller_passes_).load(std::memory_order_relaxed);
  const bool have_polled = std::exchange(seen_caller_polls_, polls) != polls;
  const bool have_posted = std::exchange(seen_caller_posts_, posts) != posts;
  const bool have_passed = std::exchange(seen_caller_passes_, passes) != passes;
  if (have_polled) {
    return CallerActivity::Polls;
  }
  if (!have_posted) {
    return CallerActivity::None;
  }
  return have_passed ? CallerActivity::PostsAndPolls : CallerActivity::Posts;
}

bool RailsTransport::advance() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && advance_locked();
}

bool RailsTransport::advance_locked() {
  state_.now_ns = now_ns();
  bool moved = poll_rails();
  if (!state_.faulty.empty()) {
    recovery_.lose_faulty();
  }
  if (!receiver_.recover_replies.empty() || !state_.recover_requests.empty()) {
    recovery_.serve_requests();
    moved = true;
  }
  moved = post_work() || moved;
  if (state_.now_ns >= next_tick_ns_) {
    next_tick_ns_ = state_.now_ns + kTickNs;
    for (LocalRail& local : state_.rails) {
      local.refuses_receives = false;
    }
    links_.rates().judge_long_bursts();
    outbox_.tell_rates();
    recovery_.tick();
  }
  return moved;
}

bool RailsTransport::poll_rails() {
  // relaxed: only a hint. The next pass has none and polls the rails that this one skips.
  const std::uint32_t ready = AtomicRef(ready_rails_).exchange(0, std::memory_order_relaxed);
  bool moved = false;
  for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
    state_.rails[local].full = false;
    post_receives(state_.rails[local]);
    if (ready == 0 || ((ready >> local) & 1U) != 0) {
      moved = poll_rail(local) || moved;
    }
  }
  return moved;
}

bool RailsTransport::poll_rail(std::uint32_t local) {
  std::array<fabric::Event, kEventsPerPoll> events;
  for (int round = 0; round < kPollsPerPass; ++round) {
    const std::size_t count = state_.rails[local].rail->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      handle(events[i], local);
    }
    if (count < events.size()) {
      return round > 0 || count > 0;
    }
  }
  return true;
}

void RailsTransport::handle(const fabric::Event& event, std::uint32_t local) {
  if (event.kind == fabric::EventKind::RemoteWrite) {
    receiver_.on_immediate(event.immediate);
    take_back_receive(event.context, local);
    return;
  }
  if (event.context == nullptr || state_.rails[local].trial->owns(event.context)) {
    // Either a connection has failed, and each of its operations will report that itself; or this
    // is a late event of the region's test.
    return;
  }
  auto& posted = static_cast<Posted&>(*event.context);
  if (posted.kind == PostedKind::Receive) {
    auto& buffer = static_cast<ReceiveBuffer&>(posted);
    if (event.kind == fabric::EventKind::Received) {
      receiver_.on_message({buffer.memory.data(), event.bytes}, RailIndex(local));
    }
    state_.rails[local].unposted.push_back(&buffer);
    post_receives(state_.rails[local]);
    return;
  }
  if (posted.abandoned) {
    recovery_.on_abandoned(posted);
    return;
  }
  if (event.kind == fabric::EventKind::Failed) {
    recovery_.on_failed(posted, event);
    return;
  }
  Peer& peer = *state_.peers[posted.peer];
  switch (posted.kind) {
    case PostedKind::Piece:
      links_.on_completed(peer, posted);
      sender_.on_piece_delivered(static_cast<PieceRecord*>(&posted));
      break;
    case PostedKind::Batch:
      links_.on_completed(peer, posted);
      outbox_.on_delivered(peer, static_cast<Batch*>(&posted));
      break;
    case PostedKind::Probe:
      recovery_.on_probe_delivered(static_cast<Probe&>(posted));
      break;
    case PostedKind::Receive:
      break;
  }
  if (!peer.queue.empty() || !peer.retry.empty()) {
    state_.activate(peer);
  }
}

// The oldest operation goes first, whichever peer it is for. So data leaves in the order in which
// the program posted it, and PEs that send to their peers in a coordinated order do not collide.
bool RailsTransport::post_queues() {
  bool moved = false;
  selector_.look_again();
  while (!state_.waiting.empty()) {
    std::ranges::pop_heap(state_.waiting, std::greater<>{});
    const std::uint32_t pe = state_.waiting.back().peer;
    state_.waiting.pop_back();
    Peer& peer = *state_.peers[pe];
    const OperationRecord* oldest = peer.queue.front();
    moved = sender_.dispatch_oldest(peer) || moved;
    if (!peer.queue.empty() && peer.queue.front() != oldest) {
      state_.waiting.push_back({peer.queue.front()->number, pe});
      std::ranges::push_heap(state_.waiting, std::greater<>{});
    }
  }
  return moved;
}

bool RailsTransport::post_work() {
  bool moved = false;
  const std::size_t count = state_.active.size();
  for (std::size_t i = 0; i < count; ++i) {
    Peer& peer = *state_.peers[state_.active[i]];
    if (peer.status == Status::Ok) {
      moved = sender_.dispatch_retries(peer) || moved;
      if (!peer.queue.empty()) {
        state_.waiting.push_back({peer.queue.front()->number, peer.pe.value});
      }
    }
  }
  std::ranges::make_heap(state_.waiting, std::greater<>{});
  moved = post_queues() || moved;
  for (std::size_t i = 0; i < count; ++i) {
    Peer& peer = *state_.peers[state_.active[i]];
    peer.active = false;
    if (peer.status == Status::Ok) {
      outbox_.post(peer, false);
      if (!peer.queue.empty() || !peer.retry.empty() || outbox_.has_work(peer)) {
        state_.activate(peer);
      }
    }
  }
  state_.active.erase(state_.active.begin(),
                      state_.active.begin() + static_cast<std::ptrdiff_t>(count));
  return moved;
}

void RailsTransport::blame(Pe peer, std::string_view fault) noexcept {
  const std::lock_guard lock(mutex_);
  if (Peer* const target = contacts_.find(peer); target != nullptr) {
    receiver_.blame(*target, fault);
    recovery_.lose_faulty();
  }
}

void RailsTransport::lose(Pe peer) noexcept {
  const std::lock_guard lock(mutex_);
  if (Peer* const target = contacts_.find(peer); target != nullptr) {
    recovery_.lose_ended(*target);
  }
}

std::uint64_t RailsTransport::moved(Pe peer) const noexcept {
  const std::lock_guard lock(mutex_);
  const Peer* target = state_.peers[peer.value].get();
  return target == nullptr ? 0 : target->moved;
}

Status RailsTransport::peer_status(Pe peer) const noexcept {
  const std::lock_guard lock(mutex_);
  const Peer* target = state_.peers[peer.value].get();
  return target == nullptr ? Status::Ok : target->status;
}

bool RailsTransport::may_sleep() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !state_.recover_requests.empty()) {
    return false;
  }
  return std::ranges::all_of(state_.rails, [](LocalRail& local) {
    const bool hears_all = local.unposted.empty() || local.refuses_receives;
    return hears_all && local.rail->may_sleep();
  });
}

void RailsTransport::begin_wait() noexcept {
  // relaxed: if it is seen late, the progress thread makes one more pass.
  AtomicRef(waiting_callers_).fetch_add(1, std::memory_order_relaxed);
}

void RailsTransport::end_wait() noexcept {
  // SYNC duty: pairs with stand_by; a thread that sees the new epoch also sees that nobody waits.
  if (AtomicRef(waiting_callers_).fetch_sub(1, std::memory_order_release) == 1) {
    next_duty();
  }
}

void RailsTransport::next_duty() noexcept {
  // SYNC duty: pairs with stand_by.
  AtomicRef(duty_epoch_).fetch_add(1, std::memory_order_release);
  AtomicRef(duty_epoch_).notify_all();
}

void RailsTransport::stand_by() noexcept {
  // SYNC duty: pairs with next_duty. The epoch is read first, so an end_wait() after this ends the
  // wait.
  const std::uint32_t epoch = AtomicRef(duty_epoch_).load(std::memory_order_acquire);
  // SYNC duty: pairs with end_wait.
  if (AtomicRef(waiting_callers_).load(std::memory_order_acquire) > 0) {
    // SYNC duty: pairs with next_duty.
    AtomicRef(duty_epoch_).wait(epoch, std::memory_order_acquire);
  }
}

bool RailsTransport::wait_for_event(std::uint32_t timeout_us) noexcept {
  constexpr std::uint32_t kBusySleepUs = 5;
  constexpr std::uint32_t kBlindSleepUs = 50;  // if a rail has no wait descriptor
  if (!may_sleep()) {
    // Another thread holds the lock, or there is work: a short sleep avoids contention on the lock.
    std::this_thread::sleep_for(std::chrono::microseconds(kBusySleepUs));
    return false;
  }
  if (has_unpollable_rail_) {
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(timeout_us, kBlindSleepUs)));
    return false;
  }
  std::array<pollfd, kRailCountMax + 1> waits;
  std::ranges::copy(wait_descriptors_, waits.begin());
  const timespec timeout{.tv_sec = timeout_us / 1'000'000,
                         .tv_nsec = static_cast<long>(timeout_us % 1'000'000) * 1000};
  if (::ppoll(waits.data(), wait_descriptors_.size(), &timeout, nullptr) <= 0) {
    return false;
  }
  std::uint32_t ready = 0;
  const std::size_t rails = wait_descriptors_.size() - 1;
  for (std::size_t i = 0; i < rails; ++i) {
    ready |= waits[i].revents != 0 ? 1U << i : 0U;
  }
  if (waits[rails].revents != 0) {
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
  }
  AtomicRef(ready_rails_).store(ready, std::memory_order_relaxed);  // see poll_rails
  return ready != 0;
}

void RailsTransport::wake() noexcept {
  ::eventfd_write(wake_, 1);
  next_duty();
}

Dropped RailsTransport::dropped() const {
  const std::lock_guard lock(mutex_);
  return state_.dropped;
}

std::size_t RailsTransport::met_peer_count() const {
  const std::lock_guard lock(mutex_);
  return state_.met.size();
}

std::size_t RailsTransport::watched_peer_count() const {
  const std::lock_guard lock(mutex_);
  return state_.watched.size();
}

std::vector<PeerRailCounters> RailsTransport::peer_counters(Pe peer) const {
  const std::lock_guard lock(mutex_);
  std::vector<PeerRailCounters> counters(contacts_.rail_count(peer));
  if (const Peer* const target = state_.peers[peer.value].get(); target != nullptr) {
    std::ranges::transform(target->rails, counters.begin(), [](const PeerRail& rail) {
      return PeerRailCounters{.put_bytes = read_counter(rail.counters->put_bytes),
                              .get_bytes = read_counter(rail.counters->get_bytes)};
    });
  }
  return counters;
}

}  // namespace weft::transport::rails
