#include "src/transport/rails/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"

namespace weft::transport::rails {

void Outbox::open_batch(Peer& peer) {
  peer.open = state_.batches.take();
  peer.open->signals = 0;
  peer.open->faults = 0;
  *peer.open->header() = {.source_pe = state_.me.value, .bytes = sizeof(BatchHeader)};
}

void Outbox::close_batch(Peer& peer) {
  peer.open->delivered = false;
  peer.open->arrived = false;
  if (peer.open->header()->frame_count > 0) {
    peer.open->header()->batch_sequence = peer.next_batch++;
    peer.kept.push_back(peer.open);
  }
  peer.closed.push_back(peer.open);
  peer.open = nullptr;
}

void Outbox::append_frame(Peer& peer, const Frame& frame, std::span<const std::byte> data) {
  std::memcpy(make_room(peer, frame.kind, data), &frame, sizeof(Frame));
}

UpdateFrame& Outbox::append_update(Peer& peer, FrameKind kind, std::span<const std::byte> data) {
  return *new (make_room(peer, kind, data)) UpdateFrame{.kind = kind};
}

std::byte* Outbox::make_room(Peer& peer, FrameKind kind, std::span<const std::byte> data) {
  const std::size_t bytes = sizeof(Frame) + padded(data.size());
  WEFT_CHECK(bytes <= state_.batch_bytes - sizeof(BatchHeader), "a frame of {} bytes", bytes);
  if (peer.open != nullptr && peer.open->header()->bytes + bytes > state_.batch_bytes) {
    close_batch(peer);
  }
  if (peer.open == nullptr) {
    open_batch(peer);
  }
  BatchHeader& header = *peer.open->header();
  std::byte* end = peer.open->memory.data() + header.bytes;
  if (!data.empty()) {
    std::memcpy(end + sizeof(Frame), data.data(), data.size());
  }
  header.bytes += static_cast<std::uint32_t>(bytes);
  ++header.frame_count;
  peer.open->signals += is_signal(kind) ? 1 : 0;
  state_.activate(peer);
  return end;
}

void Outbox::post(Peer& peer, bool urgent) {
  if (peer.announce_floor && peer.open == nullptr && peer.closed.empty()) {
    open_batch(peer);  // an empty batch: its header carries the acknowledgements
  }
  const bool gather = !urgent && peer.batches_in_flight >= kGatherAbove;
  if (peer.open != nullptr && !gather) {
    close_batch(peer);
  }
  while (!peer.closed.empty() && peer.batches_in_flight < kInFlightMax) {
    if (peer.closed.front()->arrived) {
      state_.batches.give(peer.closed.front());
    } else if (!post_one(peer, peer.closed.front())) {
      return;
    }
    peer.closed.pop_front();
  }
}

bool Outbox::post_one(Peer& peer, Batch* batch) {
  BatchHeader& header = *batch->header();
  state_.now_ns = now_ns();
  if (peer.arrivals != nullptr) {
    header.applied_floor = peer.arrivals->applied.floor();
    header.batch_floor = peer.arrivals->batches.floor();
  }
  const std::size_t bytes =
      peer.seal == nullptr ? header.bytes
                           : peer.seal->sign(batch->memory, header.bytes, peer.seal_position());
  while (const auto piece = selector_.choose_for_message(peer, bytes)) {
    RailLink& link = peer.link(piece->local, piece->remote);
    LocalRail& local = state_.rails[link.local.value];
    const fabric::LocalMemory message{batch->memory.data(), bytes};
    switch (local.rail->post_send(message, link.address, batch)) {
      case fabric::PostResult::Posted:
        links_.on_posted(peer, link, Direction::Write, bytes, *batch);
        add_to(local.counters->tx_signals, batch->signals);
        ++peer.batches_in_flight;
        peer.announce_floor = false;
        batch->posted_ns = state_.now_ns;
        if (peer.arrivals != nullptr) {
          peer.arrivals->announced_floor = header.applied_floor;
          peer.arrivals->announced_batches = header.batch_floor;
        }
        return true;
      case fabric::PostResult::Full:
        links_.on_full(peer, link);
        break;
      case fabric::PostResult::Refused:  // memory and size are valid, so the link is at fault
      case fabric::PostResult::Failed:
        links_.on_refused(peer, link);
        break;
    }
  }
  return false;
}

void Outbox::on_delivered(Peer& peer, Batch* batch) {
  --peer.batches_in_flight;
  batch->delivered = true;
  if (batch->arrived || batch->header()->frame_count == 0 || peer.status != Status::Ok) {
    state_.batches.give(batch);
  } else {
    ++peer.links[batch->link].kept;
  }
  if (has_work(peer)) {
    state_.activate(peer);
  }
}

void Outbox::on_failed(Peer& peer, Batch* batch) {
  --peer.batches_in_flight;
  if (peer.status != Status::Ok || batch->arrived) {
    state_.batches.give(batch);
    return;
  }
  peer.closed.push_front(batch);
  state_.activate(peer);
}

void Outbox::on_arrived(Peer& peer, std::uint32_t floor) {
  while (!peer.kept.empty()) {
    Batch* batch = peer.kept.front();
    if (static_cast<std::int32_t>(floor - batch->header()->batch_sequence) <= 0) {
      return;
    }
    peer.kept.pop_front();
    batch->arrived = true;
    if (batch->delivered) {
      --peer.links[batch->link].kept;
      state_.batches.give(batch);
    }
  }
}

void Outbox::check_kept(Peer& peer) {
  const std::uint64_t patience_ns = std::uint64_t{state_.options.rail_stall_ms} * 1'000'000 / 2;
  const bool has_lost_link = std::ranges::any_of(
      peer.links, [](const RailLink& link) { return !link.up && link.kept > 0; });
  if (has_lost_link || state_.now_ns > peer.kept_old_ns) {
    retransmit_kept(peer, 4 * patience_ns);
  }
  if (!peer.kept.empty() && state_.now_ns - peer.kept.front()->posted_ns > patience_ns &&
      state_.now_ns - peer.kept_asked_ns > patience_ns) {
    peer.kept_asked_ns = state_.now_ns;
    append(peer, FlushFrame{.sequence = peer.acked_floor});
  }
}

// Old ones are retransmitted as well: a duplicate is dropped, while a lost batch would stall the
// peer forever. Until the oldest of the others is old, ticks need not look at them again: there may
// be hundreds.
void Outbox::retransmit_kept(Peer& peer, std::uint64_t old_ns) {
  std::uint64_t oldest_ns = state_.now_ns;
  for (std::size_t i = peer.kept.size(); i > 0; --i) {
    Batch* batch = peer.kept[i - 1];
    RailLink& link = peer.links[batch->link];
    const bool is_old = state_.now_ns - batch->posted_ns > old_ns;
    if (!batch->delivered || (link.up && !is_old)) {
      oldest_ns = std::min(oldest_ns, batch->posted_ns);
      continue;
    }
    --link.kept;
    batch->delivered = false;
    peer.closed.push_front(batch);
    state_.activate(peer);
  }
  peer.kept_old_ns = oldest_ns + old_ns;
}

void Outbox::tell_rates() {
  if (state_.rates_offered != state_.rates_version) {
    state_.rates_offered = state_.rates_version;
    for (const std::uint32_t pe : state_.met) {
      tell_rates(*state_.peers[pe]);
    }
    return;
  }
  for (const std::uint32_t pe : state_.watched) {  // those whose traffic began later
    tell_rates(*state_.peers[pe]);
  }
}

void Outbox::tell_rates(Peer& peer) {
  const bool has_traffic =
      peer.arrivals != nullptr || peer.turns[0].burst + peer.turns[1].burst > 0;
  if (has_traffic && peer.rates_told != state_.rates_version && !peer.is_gone()) {
    peer.rates_told = state_.rates_version;
    append(peer, links_.rates().frame());
  }
}

void Outbox::drop(Peer& peer) {
  // A delivered batch is in `kept` only. The others are in `closed`, or their completion is still
  // to come.
  for (Batch* batch : peer.kept) {
    if (batch->delivered) {
      --peer.links[batch->link].kept;
      state_.batches.give(batch);
    }
  }
  peer.kept.clear();
  for (Batch* batch : peer.closed) {
    state_.batches.give(batch);
  }
  peer.closed.clear();
  if (peer.open != nullptr) {
    state_.batches.give(peer.open);
    peer.open = nullptr;
  }
  peer.announce_floor = false;
}

}  // namespace weft::transport::rails
