#include "src/transport/rails/inbox.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/log.hpp"
#include "src/transport/atomic_update.hpp"

namespace weft::transport::rails {
namespace {

// Without traffic of our own to carry it, the floor is announced after so many operations.
constexpr std::uint32_t kAnnounceEvery = SequenceWindow::kSpan / 4;
constexpr std::uint32_t kAnnounceBatches = 64;

// Instead of a number of pieces: some will come again, so counting says nothing any more.
constexpr std::uint16_t kForceOnly = 0xFFFF;

std::uint16_t& pieces_of(Arrivals& arrivals, std::uint32_t sequence) {
  return arrivals.pieces[sequence % SequenceWindow::kSpan];
}

}  // namespace

Arrivals& Inbox::arrivals_of(Peer& peer) {
  if (peer.arrivals == nullptr) {
    peer.arrivals = std::make_unique<Arrivals>();
    peer.arrivals->pieces.resize(SequenceWindow::kSpan);
  }
  return *peer.arrivals;
}

std::byte* Inbox::memory_of(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes) const {
  if (region >= state_.regions.size()) {
    return nullptr;
  }
  const LocalRegion& local = state_.regions[region];
  return offset <= local.bytes && bytes <= local.bytes - offset ? local.base + offset : nullptr;
}

void Inbox::on_message(std::span<const std::byte> message, RailIndex local) {
  BatchHeader header;
  if (message.size() >= sizeof(header)) {
    std::memcpy(&header, message.data(), sizeof(header));
  }
  const bool is_ours = message.size() >= sizeof(header) && header.magic == kBatchMagic &&
                       header.bytes == message.size() && header.source_pe < state_.pe_count &&
                       state_.peers[header.source_pe] != nullptr;
  if (!is_ours) {
    log::warn("dropped a message of {} bytes on rail {} that is not Weft's", message.size(),
              local.value);
    return;
  }
  Peer& peer = *state_.peers[header.source_pe];
  sender_.on_acked(peer, header.applied_floor);
  outbox_.on_arrived(peer, header.batch_floor);
  Arrivals& arrivals = arrivals_of(peer);
  if (header.frame_count > 0 && !arrivals.batches.mark(header.batch_sequence)) {
    return;  // sent again because its rail died after all
  }
  if (arrivals.batches.floor() - arrivals.announced_batches >= kAnnounceBatches) {
    peer.announce_floor = true;
    state_.activate(peer);
  }
  RailCounters& counters = *state_.rails[local.value].counters;
  add_to(counters.rx_bytes, message.size());
  add_to(counters.rx_message_bytes, message.size());
  add_to(counters.rx_operations, 1);
  std::span<const std::byte> rest = message.subspan(sizeof(header));
  while (rest.size() >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, rest.data(), sizeof(frame));
    rest = rest.subspan(sizeof(frame));
    const std::size_t data_bytes = frame.kind == FrameKind::EagerSignal ? frame.count : 0;
    if (padded(data_bytes) > rest.size()) {
      log::warn("dropped the rest of a message from PE {}: a frame is longer than it",
                peer.pe.value);
      return;
    }
    add_to(counters.rx_signals, is_signal(frame.kind) ? 1 : 0);
    handle(peer, frame, rest.first(data_bytes));
    rest = rest.subspan(padded(data_bytes));
  }
}

void Inbox::handle(Peer& peer, const Frame& frame, std::span<const std::byte> data) {
  switch (frame.kind) {
    case FrameKind::Atomic:
    case FrameKind::Force:
      apply(peer, frame);
      break;
    case FrameKind::Signal:
      handle_signal(peer, frame);
      break;
    case FrameKind::EagerSignal:
      if (std::byte* dest = memory_of(frame.data_region, frame.data_offset, data.size());
          dest != nullptr) {
        std::memcpy(dest, data.data(), data.size());
      }
      apply(peer, frame);
      break;
    case FrameKind::Flush:
      handle_flush(peer, frame);
      break;
    case FrameKind::Reply:
      sender_.on_reply(peer, frame.token, frame.operand);
      break;
    case FrameKind::Recover:
      state_.recover_requests.push_back({.peer = peer.pe.value, .frame = frame});
      break;
    case FrameKind::RecoverReply:
      recover_replies.push_back(frame);
      break;
  }
}

void Inbox::handle_signal(Peer& peer, const Frame& frame) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(frame.sequence)) {
    return;  // forced meanwhile
  }
  if (pieces_of(arrivals, frame.sequence) == frame.count) {
    apply(peer, frame);
  } else {
    arrivals.waiting.push_back({frame});
  }
}

void Inbox::on_immediate(std::uint32_t immediate) {
  const Immediate decoded = decode_immediate(immediate);
  if (decoded.source.value >= state_.pe_count || state_.peers[decoded.source.value] == nullptr) {
    return;
  }
  Peer& peer = *state_.peers[decoded.source.value];
  Arrivals& arrivals = arrivals_of(peer);
  const std::uint32_t sequence = arrivals.applied.widen(decoded.sequence_low);
  const bool in_window = sequence - arrivals.applied.floor() < SequenceWindow::kSpan;
  if (!in_window || arrivals.applied.is_done(sequence)) {
    return;  // late, of an operation that was recovered
  }
  if (pieces_of(arrivals, sequence) == kForceOnly) {
    return;
  }
  const std::uint16_t arrived = ++pieces_of(arrivals, sequence);
  const auto waiting = std::ranges::find_if(arrivals.waiting, [&](const WaitingSignal& signal) {
    return signal.frame.sequence == sequence && signal.frame.count == arrived;
  });
  if (waiting != arrivals.waiting.end()) {
    apply(peer, waiting->frame);
  }
}

bool Inbox::refuse_until_forced(Peer& peer, std::uint32_t sequence) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(sequence)) {
    return false;
  }
  pieces_of(arrivals, sequence) = kForceOnly;
  return true;
}

void Inbox::apply(Peer& peer, const Frame& received) {
  const Frame frame = received;  // `received` may lie in the list that is shortened below
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(frame.sequence)) {
    return;
  }
  std::byte* word = memory_of(frame.region, frame.offset, frame.element_bytes);
  std::uint64_t old = 0;
  if (word != nullptr) {
    old = apply_atomic(word, {.code = static_cast<AtomicCode>(frame.code),
                              .element_bytes = frame.element_bytes,
                              .operand = frame.operand,
                              .compare = frame.compare});
  }
  if (frame.kind == FrameKind::Atomic && frame.token != 0) {
    outbox_.append(peer, {.kind = FrameKind::Reply, .operand = old, .token = frame.token});
  }
  std::erase_if(arrivals.waiting, [&](const WaitingSignal& signal) {
    return signal.frame.sequence == frame.sequence;
  });
  pieces_of(arrivals, frame.sequence) = 0;
  mark_applied(peer, frame.sequence);
}

void Inbox::mark_applied(Peer& peer, std::uint32_t sequence) {
  Arrivals& arrivals = *peer.arrivals;
  arrivals.applied.mark(sequence);
  const std::uint32_t floor = arrivals.applied.floor();
  const bool flushed =
      arrivals.flush_wanted && static_cast<std::int32_t>(floor - arrivals.flush_below) >= 0;
  if (flushed || floor - arrivals.announced_floor >= kAnnounceEvery) {
    arrivals.flush_wanted = arrivals.flush_wanted && !flushed;
    peer.announce_floor = true;
    state_.activate(peer);
  }
}

void Inbox::handle_flush(Peer& peer, const Frame& frame) {
  Arrivals& arrivals = arrivals_of(peer);
  if (static_cast<std::int32_t>(arrivals.applied.floor() - frame.sequence) >= 0) {
    peer.announce_floor = true;
    state_.activate(peer);
    return;
  }
  const bool is_later = static_cast<std::int32_t>(frame.sequence - arrivals.flush_below) > 0;
  arrivals.flush_below = !arrivals.flush_wanted || is_later ? frame.sequence : arrivals.flush_below;
  arrivals.flush_wanted = true;
}

}  // namespace weft::transport::rails
