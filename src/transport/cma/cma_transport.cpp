#include "src/transport/cma/cma_transport.hpp"

#include <algorithm>
#include <utility>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"

namespace weft::transport::cma {
namespace {

// Asking whether a process is alive is a system call, so peers are checked only this often.
constexpr std::uint64_t kDeathCheckNs = 10'000'000;
// The longest time that batched operations wait for their caller's flush before the progress thread sends them.
constexpr std::uint32_t kBatchLookUs = 1000;
// A peer that frees room in its ring rings no bell, so waiters poll for it.
constexpr std::uint32_t kRoomLookUs = 1000;

Status complete_now(const Operation& operation, bool failed) {
  operation.counter->issue();
  operation.counter->complete(failed);
  return Status::Ok;
}

// PutSignal is not batched: its signal would be delayed as well.
bool is_gathered(const Operation& operation, SlotPath slot_path, std::size_t bytes_max) {
  const bool is_put = operation.kind == OperationKind::Put && !operation.copy_source;
  return (is_put || operation.kind == OperationKind::Get) && operation.bytes <= bytes_max &&
         slot_path != SlotPath::Always;
}

}  // namespace

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

CmaTransport::CmaTransport(CmaOptions options,
                           Pe me,
                           const std::vector<std::span<std::byte>>& regions,
                           Mailbox own)
    : options_(std::move(options)),
      me_(me),
      own_(std::move(own)),
      local_regions_(regions),
      board_(own_.memory().statuses),
      commands_(own_.memory().ring) {
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    WEFT_CHECK(
        regions_.set(RegionIndex(i), {.base = reinterpret_cast<std::uint64_t>(regions[i].data()),
                                      .bytes = regions[i].size()}),
        "region {} of {}", i, regions.size());
  }
}

bool CmaTransport::is_valid(const Peer& peer, const Operation& operation) const {
  const bool has_copy = operation.kind != OperationKind::Atomic;
  const bool has_update = !has_copy || operation.kind == OperationKind::PutSignal;
  return (!has_copy || peer.regions.address_of(operation.remote, operation.bytes) != 0) &&
         (!has_update ||
          peer.regions.address_of(operation.update.word, operation.update.element_bytes) != 0);
}

FanOut CmaTransport::note_peer(Pe peer) {
  const AtomicRef word(fan_out_);
  // relaxed: a hint; an update that another thread overwrites does no harm.
  const FanOut now = FanOut::decode(word.load(std::memory_order_relaxed)).after(peer);
  word.store(now.encode(), std::memory_order_relaxed);  // as above
  return now;
}

bool CmaTransport::leaves_copy_to_target(const Operation& operation) {
  const FanOut now = note_peer(operation.peer);
  if (operation.copy_source || options_.slot_path == SlotPath::Never) {
    return false;
  }
  if (options_.slot_path == SlotPath::Always) {
    return true;
  }
  return options_.node_pes <= options_.cores && operation.bytes > options_.small_bytes_max &&
         now.is_wide();
}

CopyResult CmaTransport::copy_now(const Peer& peer, const Operation& operation) const {
  const bool reads = operation.kind == OperationKind::Get;
  return copy_piece({.pid = peer.pid, .direction = reads ? Direction::FromPeer : Direction::ToPeer},
                    operation.local, peer.regions.address_of(operation.remote, operation.bytes),
                    operation.bytes);
}

Status CmaTransport::post(const Operation& operation) noexcept {
  Peer* peer = find(operation.peer);
  if (peer == nullptr || !is_valid(*peer, operation)) {
    return Status::InvalidArgument;
  }
  if (is_lost(*peer)) {
    return complete_now(operation, true);
  }
  const bool has_copy = operation.kind != OperationKind::Atomic && operation.bytes > 0;
  if (!has_copy && (operation.kind == OperationKind::Put || operation.kind == OperationKind::Get)) {
    return complete_now(operation, false);
  }
  if (has_copy && !is_forbidden(*peer) &&
      is_gathered(operation, options_.slot_path, options_.small_bytes_max)) {
    note_peer(operation.peer);
    return gather(*peer, operation);
  }
  flush_peer(*peer);
  return has_copy ? post_copy(*peer, operation)
                  : post_command(*peer, operation, CommandKind::Update);
}

Status CmaTransport::post_copy(Peer& peer, const Operation& operation) {
  if (is_forbidden(peer)) {
    return bounce(peer, operation);
  }
  if (leaves_copy_to_target(operation)) {
    const bool reads = operation.kind == OperationKind::Get;
    return post_command(peer, operation, reads ? CommandKind::Read : CommandKind::Write);
  }
  switch (copy_now(peer, operation)) {
    case CopyResult::Done:  // Again repeats the copy, which is idempotent
      return operation.kind == OperationKind::PutSignal
                 ? post_command(peer, operation, CommandKind::Update)
                 : complete_now(operation, false);
    case CopyResult::Forbidden:
      forbid(peer);
      return bounce(peer, operation);
    case CopyResult::Gone:
      lose(peer);
      return complete_now(operation, true);
    case CopyResult::Fault:
      break;
  }
  log_fault(peer, operation);
  return Status::Internal;
}

Status CmaTransport::post_command(Peer& peer, const Operation& operation, CommandKind kind) {
  const std::lock_guard lock(send_mutex_);
  const std::optional<std::uint32_t> slot = board_.reserve();
  if (!slot) {
    return again(peer, operation);
  }
  Command command = command_of(operation, kind, me_);
  command.status_slot = static_cast<std::uint16_t>(*slot);
  if (!push(peer.mailbox.memory().ring, me_.value, command)) {
    board_.release(*slot);
    return again(peer, operation);
  }
  sent_[*slot] = {.operation = operation, .transfer = {}, .is_open = true};
  operation.counter->issue();
  ring(peer.mailbox.memory().bell);
  return Status::Ok;
}

Status CmaTransport::again(Peer& peer, const Operation& operation) {
  if (options_.is_dead && now_ns() >= peer.next_check_ns) {
    peer.next_check_ns = now_ns() + kDeathCheckNs;
    if (options_.is_dead(peer.pe)) {
      lose(peer);
      return complete_now(operation, true);
    }
  }
  return Status::Again;
}

void CmaTransport::lose(const Peer& peer) const {
  // relaxed: sticky; publishes no other data.
  AtomicRef(peer.lost).store(1, std::memory_order_relaxed);
}

// Once per peer, because one bad address often affects many operations.
void CmaTransport::log_fault(const Peer& peer, const Operation& operation) const {
  // relaxed: a duplicate line does no harm.
  if (AtomicRef(peer.has_faulted).exchange(1, std::memory_order_relaxed) == 0) {
    log::error(
        "a copy of {} bytes between {} here and {:#x} of PE {} accessed unmapped memory on "
        "one of the sides",
        operation.bytes, operation.local,
        peer.regions.address_of(operation.remote, operation.bytes), peer.pe.value);
  }
}

bool CmaTransport::collect() {
  const std::lock_guard lock(send_mutex_);
  const bool collected = board_.collect(
      [this](std::uint32_t slot, const Answer& given) { on_answer(sent_[slot], given); });
  return send_rest() || collected;
}

void CmaTransport::on_answer(Sent& sent, const Answer& given) {
  sent.is_open = false;
  const bool failed = given.state != SlotState::Done;
  if (sent.transfer) {
    return end_piece(sent, failed);
  }
  if (given.state == SlotState::Forbidden) {  // the target could not copy: retry through chunks
    forbid(*find(sent.operation.peer));
    const auto index = start_transfer(sent.operation, TransferTable::kTransfersMax);
    WEFT_CHECK(index.has_value(), "{} transfers", transfers_.count());
    return;
  }
  if (sent.operation.result != nullptr) {
    *sent.operation.result = given.result;
  }
  sent.operation.counter->complete(failed);
}

bool CmaTransport::fail_lost_peers() {
  const std::lock_guard lock(send_mutex_);
  if (!options_.is_dead || now_ns() < next_check_ns_) {
    return false;
  }
  next_check_ns_ = now_ns() + kDeathCheckNs;
  bool moved = false;
  for (std::uint32_t slot = 0; slot < kStatusSlots; ++slot) {
    if (sent_[slot].is_open && options_.is_dead(sent_[slot].operation.peer)) {
      board_.release(slot);
      fail_sent(sent_[slot]);
      moved = true;
    }
  }
  for (std::uint32_t i = 0; transfers_.count() > 0 && i < TransferTable::kTransfersMax; ++i) {
    if (transfers_[i].is_used && options_.is_dead(transfers_[i].operation.peer)) {
      lose(*find(transfers_[i].operation.peer));
      transfers_[i].has_failed = true;
      end_transfer_if_done(i);
      moved = true;
    }
  }
  return moved;
}

void CmaTransport::fail_sent(Sent& sent) {
  sent.is_open = false;
  lose(*find(sent.operation.peer));
  if (sent.transfer) {
    end_piece(sent, true);
  } else {
    sent.operation.counter->complete(true);
  }
}

bool CmaTransport::progress() noexcept {
  const bool drained = drain();
  const bool issued = issue_all();
  const bool collected = collect();
  return fail_lost_peers() || drained || issued || collected;
}

// Leaves batches to their callers; sends only those that were already open at the previous call.
bool CmaTransport::advance() noexcept {
  const bool drained = drain();
  const bool collected = collect();
  const bool moved = fail_lost_peers() || drained || collected;
  // relaxed: a hint.
  const bool has_batches = AtomicRef(open_batches_).load(std::memory_order_relaxed) != 0;
  const bool issued = has_batches && had_batches_ && !moved && issue_all();
  had_batches_ = has_batches && !issued;
  return moved || issued;
}

bool CmaTransport::wait_for_event(std::uint32_t timeout_us) noexcept {
  // A peer that frees room in its ring rings no bell.
  // relaxed: a hint.
  if (AtomicRef(open_transfers_).load(std::memory_order_relaxed) != 0) {
    timeout_us = std::min(timeout_us, kRoomLookUs);
  }
  // relaxed: a hint.
  if (AtomicRef(open_batches_).load(std::memory_order_relaxed) != 0) {
    timeout_us = std::min(timeout_us, kBatchLookUs);
  }
  return sleep_at(own_.memory().bell, timeout_us, [this] { return has_news(); });
}

// Never blocks on a lock. A thread that holds one is making progress and may miss work that arrives just then, so
// the answer is true.
bool CmaTransport::has_news() {
  // SYNC cma-wake: pairs with wake.
  if (AtomicRef(is_woken_).exchange(0, std::memory_order_acquire) != 0) {
    return true;
  }
  const std::unique_lock draining(drain_mutex_, std::try_to_lock);
  const std::unique_lock sending(send_mutex_, std::try_to_lock);
  return !draining.owns_lock() || !sending.owns_lock() || commands_.has_ready() ||
         board_.has_news();
}

void CmaTransport::wake() noexcept {
  // SYNC cma-wake: pairs with has_news.
  AtomicRef(is_woken_).store(1, std::memory_order_release);
  ring(own_.memory().bell);
}

Status CmaTransport::peer_status(Pe peer) const noexcept {
  const Peer* known = find(peer);
  return known != nullptr && is_lost(*known) ? Status::PeerLost : Status::Ok;
}

}  // namespace weft::transport::cma
