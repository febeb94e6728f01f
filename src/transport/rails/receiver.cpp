#include "src/transport/rails/receiver.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/log.hpp"
#include "src/transport/rails/region_memory.hpp"

namespace weft::transport::rails {
namespace {

// Acknowledgements travel in the headers of our own batches. Without such traffic, one is sent
// after this many operations or batches.
constexpr std::uint32_t kAnnounceEvery = SequenceWindow::kSpan / 4;
constexpr std::uint32_t kAnnounceBatches = 64;

PieceTally& tally_of(Arrivals& arrivals, std::uint32_t sequence) {
  return arrivals.tallies.at(sequence).pieces;
}

// Acknowledgements may arrive out of order, but none is ahead of what was sent.
bool is_ahead(std::uint32_t floor, std::uint32_t next) {
  return static_cast<std::int32_t>(floor - next) > 0;
}

}  // namespace

Arrivals& Receiver::arrivals_of(Peer& peer) {
  if (peer.arrivals == nullptr) {
    state_.watch(peer);
    peer.arrivals = std::make_unique<Arrivals>(state_.tally_blocks);
  }
  return *peer.arrivals;
}

Peer* Receiver::sender_of(std::span<const std::byte> message, RailIndex local) {
  BatchHeader header{.magic = 0};
  if (message.size() >= sizeof(header)) {
    std::memcpy(&header, message.data(), sizeof(header));
  }
  Peer* const found = header.magic == kBatchMagic ? contacts_.find(Pe(header.source_pe)) : nullptr;
  if (found == nullptr) {
    if (++state_.dropped.strangers == 1) {
      log::warn("dropped a message of {} bytes on rail {}: its sender is not a PE of this job",
                message.size(), local.value);
    }
    return nullptr;
  }
  if (found->is_gone()) {
    ++state_.dropped.late;
    return nullptr;
  }
  return found;
}

std::optional<std::span<const std::byte>> Receiver::open(const Peer& peer,
                                                         std::span<std::byte> message,
                                                         RailIndex local) {
  if (peer.seal == nullptr) {
    return message;
  }
  const auto signed_part = peer.seal->open(message, peer.seal_position());
  if (!signed_part && ++state_.dropped.forged == 1) {
    log::warn(
        "refused a message of {} bytes on rail {} in the name of PE {}: its signature is wrong, so "
        "another program sent or changed it (WEFT_AUTHENTICATE=frames); the job goes on, and "
        "further ones are only counted",
        message.size(), local.value, peer.pe.value);
  }
  if (!signed_part) {
    add_to(state_.rails[local.value].counters->refused, 1);
  }
  return signed_part;
}

std::string_view Receiver::fault_of_message(const Peer& peer,
                                            std::span<const std::byte> message,
                                            const BatchHeader& header) const {
  if (is_ahead(header.applied_floor, peer.next_sequence)) {
    return "it acknowledges operations that were never sent to it";
  }
  if (is_ahead(header.batch_floor, peer.next_batch)) {
    return "it acknowledges messages that were never sent to it";
  }
  return fault_of(message, header,
                  {.regions = state_.regions,
                   .applied_floor = peer.arrivals->applied.floor(),
                   .rails = state_.rails.size(),
                   .peer_rails = peer.rails.size()});
}

void Receiver::blame(Peer& peer, std::string_view fault) {
  if (!peer.is_gone()) {
    peer.fault = fault;
    state_.faulty.push_back(peer.pe.value);
  }
}

void Receiver::on_message(std::span<std::byte> whole, RailIndex local) {
  Peer* const sender = sender_of(whole, local);
  if (sender == nullptr) {
    return;
  }
  Peer& peer = *sender;
  const auto signed_part = open(peer, whole, local);
  if (!signed_part) {
    return;
  }
  const std::span<const std::byte> message = *signed_part;
  BatchHeader header;
  std::memcpy(&header, message.data(), sizeof(header));
  Arrivals& arrivals = arrivals_of(peer);
  if (const std::string_view fault = fault_of_message(peer, message, header); !fault.empty()) {
    blame(peer, fault);
    return;
  }
  sender_.on_acked(peer, header.applied_floor);
  outbox_.on_arrived(peer, header.batch_floor);
  if (header.frame_count > 0 && !arrivals.batches.mark(header.batch_sequence)) {
    ++state_.dropped.late;  // a duplicate: it was retransmitted although it had arrived
    return;
  }
  if (arrivals.batches.floor() - arrivals.announced_batches >= kAnnounceBatches) {
    peer.announce_floor = true;
    state_.activate(peer);
  }
  RailCounters& counters = *state_.rails[local.value].counters;
  add_to(counters.rx_bytes, whole.size());
  add_to(counters.rx_message_bytes, whole.size());
  add_to(counters.rx_operations, 1);
  BatchReader reader(message.subspan(sizeof(header)));
  while (const auto received = reader.next()) {
    add_to(counters.rx_signals, is_signal(received->frame.kind) ? 1 : 0);
    handle(peer, *received);
  }
}

void Receiver::handle(Peer& peer, const ReceivedFrame& received) {
  const Frame& frame = received.frame;
  switch (frame.kind) {
    case FrameKind::EagerPiece:
      take_piece(peer, frame_as<UpdateFrame>(frame), received.data);
      break;
    case FrameKind::Force:
      force(peer, frame_as<UpdateFrame>(frame));
      break;
    case FrameKind::Atomic:
    case FrameKind::EagerSignal:
      apply(peer, frame_as<UpdateFrame>(frame), received.data);
      break;
    case FrameKind::Signal:
      handle_signal(peer, frame_as<UpdateFrame>(frame));
      break;
    case FrameKind::Skip:
      skip(peer, frame_as<UpdateFrame>(frame).sequence);
      break;
    case FrameKind::Flush:
      handle_flush(peer, frame_as<FlushFrame>(frame));
      break;
    case FrameKind::Reply: {
      const auto reply = frame_as<ReplyFrame>(frame);
      state_.dropped.answers += sender_.on_reply(peer, reply.token, reply.value) ? 0 : 1;
      break;
    }
    case FrameKind::Recover:
      state_.recover_requests.push_back(
          {.peer = peer.pe.value, .frame = frame_as<RecoverFrame>(frame)});
      break;
    case FrameKind::RecoverReply:
      recover_replies.push_back({peer.pe, frame_as<RecoverReplyFrame>(frame)});
      break;
    case FrameKind::Rates:
      links_.rates().on_told(peer, frame_as<RatesFrame>(frame));
      break;
  }
}

void Receiver::handle_signal(Peer& peer, const UpdateFrame& frame) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(frame.sequence)) {
    return;  // a Force frame has applied it already
  }
  switch (tally_of(arrivals, frame.sequence).on_signal(frame.count)) {
    case PieceTally::Answer::Complete:
      apply(peer, frame);
      break;
    case PieceTally::Answer::Wait:
      arrivals.waiting.push_back(frame);
      break;
    case PieceTally::Answer::Ignore:
      break;
    case PieceTally::Answer::Nonsense:
      blame(peer, "the number of pieces of a signal does not match those that arrived");
      break;
  }
}

void Receiver::on_immediate(std::uint32_t immediate) {
  const Immediate decoded = decode_immediate(immediate);
  Peer* const found = contacts_.find(decoded.source);
  if (found == nullptr) {
    ++state_.dropped.strangers;
    return;
  }
  Peer& peer = *found;
  Arrivals& arrivals = arrivals_of(peer);
  const std::uint32_t sequence = arrivals.applied.widen(decoded.sequence_low);
  const bool in_window = sequence - arrivals.applied.floor() < SequenceWindow::kSpan;
  if (peer.is_gone() || !in_window || arrivals.applied.is_done(sequence)) {
    ++state_.dropped.late;  // of a lost peer, or of an operation that is done after a recovery
    return;
  }
  ++peer.moved;
  if (tally_of(arrivals, sequence).on_piece()) {
    apply_waiting(peer, sequence);
  }
}

// Messages arrive once each, so these pieces can be counted also after a recovery.
void Receiver::take_piece(Peer& peer, const UpdateFrame& frame, std::span<const std::byte> data) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(frame.sequence)) {
    return;  // of an operation that has failed
  }
  state_.dropped.updates += store_data(state_, frame, data) ? 0 : 1;
  SequenceTally& tally = arrivals.tallies.at(frame.sequence);
  const std::uint32_t arrived = ++tally.eager;
  if (tally.pieces.on_piece()) {
    apply_waiting(peer, frame.sequence);
    return;
  }
  const auto forced = std::ranges::find(arrivals.waiting, frame.sequence, &UpdateFrame::sequence);
  if (forced != arrivals.waiting.end() && forced->kind == FrameKind::Force &&
      forced->count == arrived) {
    apply_waiting(peer, frame.sequence);
  }
}

void Receiver::force(Peer& peer, const UpdateFrame& frame) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(frame.sequence)) {
    return;
  }
  SequenceTally& tally = arrivals.tallies.at(frame.sequence);
  if (frame.count <= tally.eager) {
    apply(peer, frame);
    return;
  }
  forget_signal(arrivals, frame.sequence);
  tally.pieces.on_recovery();
  arrivals.waiting.push_back(frame);
}

void Receiver::apply_waiting(Peer& peer, std::uint32_t sequence) {
  Arrivals& arrivals = arrivals_of(peer);
  const auto signal = std::ranges::find(arrivals.waiting, sequence, &UpdateFrame::sequence);
  const UpdateFrame frame = *signal;
  arrivals.waiting.erase(signal);
  apply(peer, frame);
}

bool Receiver::refuse_until_forced(Peer& peer, std::uint32_t sequence) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(sequence)) {
    return false;
  }
  forget_signal(arrivals, sequence);
  tally_of(arrivals, sequence).on_recovery();
  return true;
}

void Receiver::forget_signal(Arrivals& arrivals, std::uint32_t sequence) {
  const SequenceTally* const tally = arrivals.tallies.find(sequence);
  if (tally != nullptr && tally->pieces.may_wait()) {
    std::erase_if(arrivals.waiting,
                  [&](const UpdateFrame& signal) { return signal.sequence == sequence; });
  }
}

void Receiver::apply(Peer& peer, const UpdateFrame& frame, std::span<const std::byte> data) {
  Arrivals& arrivals = arrivals_of(peer);
  if (arrivals.applied.is_done(frame.sequence)) {
    return;
  }
  const std::optional<std::uint64_t> old = apply_update(state_, frame, data);
  state_.dropped.updates += old ? 0 : 1;
  if (frame.kind == FrameKind::Atomic && frame.token != 0) {
    outbox_.append(peer, ReplyFrame{.token = frame.token, .value = old.value_or(0)});
  }
  settle(peer, frame.sequence);
}

void Receiver::skip(Peer& peer, std::uint32_t sequence) {
  if (!arrivals_of(peer).applied.is_done(sequence)) {
    settle(peer, sequence);
  }
}

void Receiver::settle(Peer& peer, std::uint32_t sequence) {
  Arrivals& arrivals = arrivals_of(peer);
  forget_signal(arrivals, sequence);
  if (SequenceTally* const tally = arrivals.tallies.find(sequence); tally != nullptr) {
    *tally = {};
  }
  mark_applied(peer, sequence);
}

void Receiver::mark_applied(Peer& peer, std::uint32_t sequence) {
  Arrivals& arrivals = *peer.arrivals;
  arrivals.applied.mark(sequence);
  const std::uint32_t floor = arrivals.applied.floor();
  arrivals.tallies.advance(floor);
  const bool flushed =
      arrivals.flush_wanted && static_cast<std::int32_t>(floor - arrivals.flush_below) >= 0;
  if (flushed || floor - arrivals.announced_floor >= kAnnounceEvery) {
    arrivals.flush_wanted = arrivals.flush_wanted && !flushed;
    peer.announce_floor = true;
    state_.activate(peer);
  }
}

void Receiver::handle_flush(Peer& peer, const FlushFrame& frame) {
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
