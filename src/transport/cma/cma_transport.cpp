#include "src/transport/cma/cma_transport.hpp"

#include <utility>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"

namespace weft::transport::cma {
namespace {

constexpr std::uint64_t kDeathCheckNs = 10'000'000;

Status complete_now(const Operation& operation, bool failed) {
  operation.counter->issue();
  operation.counter->complete(failed);
  return Status::Ok;
}

// PutSignal is not: its signal would wait for company too.
bool is_gathered(const Operation& operation, std::size_t bytes_max) {
  const bool is_put = operation.kind == OperationKind::Put && !operation.copy_source;
  return (is_put || operation.kind == OperationKind::Get) && operation.bytes > 0 &&
         operation.bytes <= bytes_max;
}

Command command_of(const Operation& operation, CommandKind kind, Pe me) {
  return {
      .sender = me.value,
      .status_slot = 0,
      .chunk = 0,
      .kind = kind,
      .has_update = operation.kind == OperationKind::PutSignal ? std::uint8_t{1} : std::uint8_t{0},
      .code = operation.update.code,
      .element_bytes = operation.update.element_bytes,
      .region = operation.remote.region.value,
      .word_region = operation.update.word.region.value,
      .unused = 0,
      .offset = operation.remote.offset.value,
      .bytes = operation.bytes,
      .local = reinterpret_cast<std::uint64_t>(operation.local),
      .word_offset = operation.update.word.offset.value,
      .operand = operation.update.operand,
      .compare = operation.update.compare};
}

}  // namespace

CmaTransport::CmaTransport(CmaOptions options,
                           Pe me,
                           const std::vector<LocalRegion>& regions,
                           Mailbox own)
    : options_(std::move(options)),
      me_(me),
      own_(std::move(own)),
      local_regions_(regions),
      board_(own_.memory().statuses),
      commands_(own_.memory().ring) {
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    WEFT_CHECK(
        regions_.set(RegionIndex(i), {.base = reinterpret_cast<std::uint64_t>(regions[i].base),
                                      .bytes = regions[i].bytes}),
        "region {} of {}", i, regions.size());
  }
}

bool CmaTransport::is_lost(const Peer& peer) const {
  return AtomicRef(peer.lost).load(std::memory_order_relaxed) != 0;  // sticky; carries nothing
}

bool CmaTransport::is_valid(const Peer& peer, const Operation& operation) const {
  const bool has_copy = operation.kind != OperationKind::Atomic;
  const bool has_update = !has_copy || operation.kind == OperationKind::PutSignal;
  return (!has_copy || peer.regions.address_of(operation.remote, operation.bytes) != 0) &&
         (!has_update ||
          peer.regions.address_of(operation.update.word, operation.update.element_bytes) != 0);
}

bool CmaTransport::leaves_copy_to_target(const Operation& operation) {
  const AtomicRef word(fan_out_);
  // relaxed: a hint; an update that another thread overwrites does no harm.
  const FanOut now = FanOut::decode(word.load(std::memory_order_relaxed)).after(operation.peer);
  word.store(now.encode(), std::memory_order_relaxed);  // as above
  if (operation.copy_source || options_.slot_path == SlotPath::Never) {
    return false;
  }
  if (options_.slot_path == SlotPath::Always) {
    return true;
  }
  return options_.node_pes <= options_.cores && operation.bytes > options_.small_bytes_max &&
         now.is_wide();
}

bool CmaTransport::copy_now(const Peer& peer, const Operation& operation) const {
  const bool reads = operation.kind == OperationKind::Get;
  return copy_piece({.pid = peer.pid, .direction = reads ? Direction::FromPeer : Direction::ToPeer},
                    operation.local, peer.regions.address_of(operation.remote, operation.bytes),
                    operation.bytes) == CopyResult::Done;
}

Status CmaTransport::post(const Operation& operation) noexcept {
  Peer* peer = find(operation.peer);
  if (peer == nullptr || !is_valid(*peer, operation)) {
    return Status::InvalidArgument;
  }
  if (is_lost(*peer)) {
    return complete_now(operation, true);
  }
  if (operation.kind == OperationKind::Atomic) {
    flush_peer(*peer);
    return post_command(*peer, operation, CommandKind::Update);
  }
  const bool reads = operation.kind == OperationKind::Get;
  if (operation.bytes > 0 && leaves_copy_to_target(operation)) {
    flush_peer(*peer);
    return post_command(*peer, operation, reads ? CommandKind::Read : CommandKind::Write);
  }
  if (is_gathered(operation, options_.small_bytes_max)) {
    return gather(*peer, operation);
  }
  const bool copied = operation.bytes == 0 || copy_now(*peer, operation);
  if (copied && operation.kind == OperationKind::PutSignal) {
    flush_peer(*peer);
    return post_command(*peer, operation, CommandKind::Update);  // Again repeats the copy: harmless
  }
  return complete_now(operation, !copied);
}

Status CmaTransport::post_command(Peer& peer, const Operation& operation, CommandKind kind) {
  const std::lock_guard lock(send_mutex_);
  const std::optional<std::uint32_t> slot = board_.reserve();
  if (!slot) {
    return Status::Again;
  }
  Command command = command_of(operation, kind, me_);
  command.status_slot = static_cast<std::uint16_t>(*slot);
  if (!push(peer.mailbox.memory().ring, me_.value, command)) {
    board_.release(*slot);
    return Status::Again;
  }
  sent_[*slot] = operation;
  in_flight_[*slot] = true;
  operation.counter->issue();
  ring(peer.mailbox.memory().bell);
  return Status::Ok;
}

bool CmaTransport::collect() {
  const std::lock_guard lock(send_mutex_);
  return board_.collect([this](std::uint32_t slot, const Answer& given) {
    const Operation& operation = sent_[slot];
    in_flight_[slot] = false;
    if (operation.result != nullptr) {
      *operation.result = given.result;
    }
    operation.counter->complete(given.state != SlotState::Done);
  });
}

bool CmaTransport::fail_lost_peers() {
  const std::lock_guard lock(send_mutex_);
  if (!options_.is_dead || now_ns() < next_check_ns_) {
    return false;
  }
  next_check_ns_ = now_ns() + kDeathCheckNs;
  bool moved = false;
  for (std::uint32_t slot = 0; slot < kStatusSlots; ++slot) {
    if (in_flight_[slot] && options_.is_dead(sent_[slot].peer)) {
      // relaxed: sticky; carries nothing.
      AtomicRef(peers_[sent_[slot].peer.value]->lost).store(1, std::memory_order_relaxed);
      in_flight_[slot] = false;
      board_.release(slot);
      sent_[slot].counter->complete(true);
      moved = true;
    }
  }
  return moved;
}

bool CmaTransport::progress() noexcept {
  const bool drained = drain();
  const bool issued = issue_all();
  const bool collected = collect();
  return fail_lost_peers() || drained || issued || collected;
}

bool CmaTransport::wait_for_event(std::uint32_t timeout_us) noexcept {
  return sleep_at(own_.memory().bell, timeout_us, [this] {
    const std::scoped_lock lock(drain_mutex_, send_mutex_);
    // relaxed: a hint; who posts and does not wait is not waited for.
    return AtomicRef(open_batches_).load(std::memory_order_relaxed) != 0 || commands_.has_ready() ||
           board_.has_news();
  });
}

Status CmaTransport::peer_status(Pe peer) const noexcept {
  const Peer* known = find(peer);
  return known != nullptr && is_lost(*known) ? Status::PeerLost : Status::Ok;
}

}  // namespace weft::transport::cma
