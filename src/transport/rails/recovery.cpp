#include "src/transport/rails/recovery.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/log.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kAbandonNs = 60 * kNsPerMs;
constexpr std::uint64_t kOpeningNs = 1000 * kNsPerMs;

// The errors with which providers report that a NIC, ours or the peer's, does not answer. They come
// after a timeout, which for EFA is long.
bool tells_of_a_nic(int error) {
  return error == EHOSTUNREACH || error == EHOSTDOWN || error == ENETUNREACH || error == ENETDOWN ||
         error == ETIMEDOUT || error == ECONNABORTED;  // the last: EFA from libfabric 2.0 on
}

// The errors with which providers report an operation that they cannot carry out: memory that is no
// longer registered, an invalid key. For an invalid key EFA reports EINVAL, and cxi EIO, which can
// also mean a fault of the link.
bool tells_of_an_operation(int error) {
  return error == EINVAL || error == EIO || error == EFAULT || error == EACCES || error == EPERM ||
         error == EMSGSIZE || error == ENOKEY;
}

}  // namespace

void Recovery::on_failed(Posted& posted, const fabric::Event& event) {
  Peer& peer = *state_.peers[posted.peer];
  RailLink& link = peer.links[posted.link];
  const auto words = [&] { return state_.rails[link.local.value].rail->words_of(event); };
  links_.on_failed(peer, posted);
  const bool is_news = link.up;
  links_.set_down(peer, link, is_news ? words() : std::string());
  if (is_news && tells_of_a_nic(event.error)) {
    suspect_neighbours(peer, link);
  }
  const bool is_hopeless = is_given_up(peer, posted, event.error);
  switch (posted.kind) {
    case PostedKind::Piece:
      if (is_hopeless) {
        sender_.give_up(static_cast<PieceRecord*>(&posted), words());
      } else {
        recover_piece(peer, static_cast<PieceRecord*>(&posted));
      }
      break;
    case PostedKind::Batch:
      outbox_.on_failed(peer, static_cast<Batch*>(&posted));
      if (is_hopeless && !peer.is_gone()) {
        peer.fault = words();
        peer.refuses_messages = true;
        state_.faulty.push_back(peer.pe.value);
      }
      break;
    case PostedKind::Probe:
      link.probing = false;
      state_.probes.give(static_cast<Probe*>(&posted));
      break;
    case PostedKind::Receive:
      break;
  }
}

// A link that fails is not used until a write over it has been delivered. So if an operation fails
// more often than there are links, and each time with an error about itself, the fault is its own.
bool Recovery::is_given_up(const Peer& peer, Posted& posted, int error) {
  constexpr std::size_t kFaultsMin = 8;
  if (!tells_of_an_operation(error)) {
    return false;
  }
  return ++posted.faults > std::max(peer.links.size(), kFaultsMin);
}

// One of the two NICs may be gone, which of them is not known. If the other links of both were
// tried one after the other, each would take its timeout (a cut NIC of four on emulated EFA: 2.0 s
// until the rate was back, now 0.5 s). So they are down until a probe says otherwise, which those
// that work do at the next tick. One link is kept.
void Recovery::suspect_neighbours(Peer& peer, const RailLink& dead) {
  auto left = std::ranges::count_if(peer.links, &RailLink::up);
  for (RailLink& link : peer.links) {
    if (link.up && left > 1 && (link.local == dead.local || link.remote == dead.remote)) {
      links_.set_down(peer, link, "it shares a NIC with a link that failed");
      link.probe_at_ns = state_.now_ns;
      --left;
    }
  }
}

// A get is simply repeated. Before a piece of a put is retransmitted, the target closes the
// connection from its side.
void Recovery::recover_piece(Peer& peer, PieceRecord* piece) {
  OperationRecord& record = *piece->operation;
  if (peer.status != Status::Ok) {
    sender_.drop_piece(piece);
    return;
  }
  state_.activate(peer);
  if (record.operation.kind == OperationKind::Get) {
    peer.retry.push_back(piece);
    return;
  }
  record.forced = record.forced || record.sequenced;
  piece->with_immediate = false;
  peer.recovering.push_back(piece);
  const RailLink& link = peer.links[piece->link];
  outbox_.append(
      peer,
      RecoverFrame{.sender_rail = static_cast<std::uint8_t>(link.local.value),
                   .target_rail = static_cast<std::uint8_t>(link.remote.value),
                   .is_sequenced = static_cast<std::uint8_t>(record.sequenced ? 1 : 0),
                   .sequence = record.sequence,
                   .token = piece->token(),
                   .is_nic_down = static_cast<std::uint8_t>(is_nic_down(link.local) ? 1 : 0)});
}

// Our own data on the connection is lost as well, so our link is down, too, until a probe succeeds.
// If the peer's NIC is down, all links to it are.
void Recovery::end_connection(Peer& peer, const RecoverFrame& frame) {
  const RailIndex ours(frame.target_rail);
  const RailIndex theirs(frame.sender_rail);
  if (frame.is_nic_down != 0) {
    set_peer_rail_down(peer, theirs, "the peer reports that its NIC is down");
  }
  links_.set_down(peer, peer.link(ours, theirs), "the peer reports that the connection failed");
  state_.rails[ours.value].rail->cut(peer.rails[theirs.value].address);
}

void Recovery::serve_requests() {
  for (const Receiver::RecoverReply& reply : receiver_.recover_replies) {
    on_recover_reply(*state_.peers[reply.from.value], reply.frame);
  }
  receiver_.recover_replies.clear();
  std::vector<RecoverRequest> requests;
  requests.swap(state_.recover_requests);
  for (RecoverRequest& request : requests) {
    Peer& peer = *state_.peers[request.peer];
    if (peer.status != Status::Ok) {
      continue;
    }
    const RecoverFrame& frame = request.frame;
    if (request.passes_left-- > 0) {
      end_connection(peer, frame);
      state_.recover_requests.push_back(request);
      continue;
    }
    const bool was_applied =
        frame.is_sequenced != 0 && !receiver_.refuse_until_forced(peer, frame.sequence);
    outbox_.append(peer,
                   RecoverReplyFrame{.was_applied = static_cast<std::uint8_t>(was_applied ? 1 : 0),
                                     .token = frame.token});
  }
}

void Recovery::on_recover_reply(Peer& peer, const RecoverReplyFrame& frame) {
  PieceRecord* piece = state_.pieces.find(frame.token);
  if (piece == nullptr || std::erase(peer.recovering, piece) == 0) {
    ++state_.dropped.answers;
    return;
  }
  if (frame.was_applied != 0) {
    sender_.on_piece_delivered(piece);
  } else {
    peer.retry.push_back(piece);
    state_.activate(peer);
  }
}

bool Recovery::probe(Peer& peer, RailLink& link) {
  LocalRail& local = state_.rails[link.local.value];
  Probe* probe = state_.probes.take();
  const fabric::LocalMemory here{&probe->word, sizeof(probe->word)};
  const fabric::RegionKey& heap = peer.region_of(link, RegionIndex(0));
  const fabric::RemoteMemory there{link.address, heap.base + state_.probe_offset, heap.key};
  const fabric::PostResult result = local.rail->post_write(here, there, std::nullopt, probe);
  if (result == fabric::PostResult::Posted) {
    links_.on_posted(peer, link, Direction::Write, sizeof(probe->word), *probe);
    link.probing = true;
    return true;
  }
  state_.probes.give(probe);
  if (result == fabric::PostResult::Full) {
    links_.await_opening(peer, link);
    return false;
  }
  links_.set_down(peer, link, fabric::error_words(local.rail->last_error()));
  return true;
}

void Recovery::on_probe_delivered(Probe& probe) {
  Peer& peer = *state_.peers[probe.peer];
  RailLink& link = peer.links[probe.link];
  links_.on_completed(peer, probe);
  links_.set_up(peer, link);
  link.probing = false;
  state_.probes.give(&probe);
  state_.activate(peer);
}

// The provider still owns the records, so copies of them are failed instead.
void Recovery::abandon_posts(Peer& peer, RailLink& link) {
  const std::vector<Posted*> posts = link.posts;
  for (Posted* posted : posts) {
    links_.on_failed(peer, *posted);
    posted->abandoned = true;
    switch (posted->kind) {
      case PostedKind::Piece: {
        PieceRecord* copy = state_.pieces.take();
        *copy = static_cast<PieceRecord&>(*posted);
        copy->abandoned = false;
        recover_piece(peer, copy);
        break;
      }
      case PostedKind::Batch: {
        Batch* copy = state_.batches.take();
        *copy = static_cast<Batch&>(*posted);
        copy->abandoned = false;
        std::ranges::replace(peer.kept, static_cast<Batch*>(posted), copy);
        outbox_.on_failed(peer, copy);
        break;
      }
      case PostedKind::Probe:
        link.probing = false;
        break;
      case PostedKind::Receive:
        break;
    }
  }
}

void Recovery::on_abandoned(Posted& posted) {
  switch (posted.kind) {
    case PostedKind::Piece:
      state_.pieces.give(static_cast<PieceRecord*>(&posted));
      break;
    case PostedKind::Batch:
      state_.batches.give(static_cast<Batch*>(&posted));
      break;
    case PostedKind::Probe:
      state_.probes.give(static_cast<Probe*>(&posted));
      break;
    case PostedKind::Receive:
      break;
  }
}

// One connection to the peer's rail is dead although our NIC has its carrier, or the peer reports
// that its NIC is down. All links to that rail are set down. Probes bring back those that work
// within 250 ms.
void Recovery::set_peer_rail_down(Peer& peer, RailIndex remote, const std::string& reason) {
  for (RailLink& link : peer.links) {
    if (link.remote == remote) {
      links_.set_down(peer, link, reason);
    }
  }
}

bool Recovery::is_nic_down(RailIndex local) const {
  return state_.rails[local.value].rail->examine({}, 0) == fabric::LinkHealth::NicDown;
}

void Recovery::set_local_rail_down(Peer& peer, RailIndex local) {
  for (std::uint32_t remote = 0; remote < peer.rails.size(); ++remote) {
    links_.set_down(peer, peer.link(local, RailIndex(remote)), "the NIC is down");
  }
}

// When a NIC goes down, its links to all peers that this PE has met are set down, and all of these
// peers are watched from then on. Later ticks look only at watched peers; Contacts sets the links
// of those that it meets later.
void Recovery::check_nics() {
  for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
    const bool was_down =
        std::exchange(state_.rails[local].nic_down, is_nic_down(RailIndex(local)));
    if (!state_.rails[local].nic_down) {
      continue;
    }
    for (std::size_t i = 0; was_down && i < state_.watched.size(); ++i) {
      set_local_rail_down(*state_.peers[state_.watched[i]], RailIndex(local));
    }
    for (std::size_t i = 0; !was_down && i < state_.met.size(); ++i) {
      set_local_rail_down(*state_.peers[state_.met[i]], RailIndex(local));
    }
  }
}

// Rail::examine walks over all open descriptors. Thousands of connections may be opening at the
// same time, so only one of these is examined in each tick.
bool Recovery::is_suspect(const RailLink& link) {
  const std::uint64_t silent_ns = state_.now_ns - link.progress_ns;
  if (!link.posts.empty() || link.kept > 0) {
    return silent_ns > state_.options.rail_stall_ms * kNsPerMs;
  }
  return link.opening && silent_ns > kOpeningNs && !std::exchange(has_seen_opening_, true);
}

void Recovery::check_link(Peer& peer, RailLink& link) {
  fabric::Rail& rail = *state_.rails[link.local.value].rail;
  const auto& address = peer.rails[link.remote.value].address;
  if (link.up && is_suspect(link)) {
    if (rail.examine(address, state_.options.rail_stall_ms) == fabric::LinkHealth::Dead) {
      if (link.opening) {
        links_.set_down(peer, link, "nothing answers");
        rail.cut(address);  // the next probe opens a new one
      } else {
        set_peer_rail_down(peer, link.remote, "the connection makes no progress");
      }
    }
    link.progress_ns = state_.now_ns;  // examine it again after the same time
  }
  // When a connection is lost, tcp;ofi_rxm of libfabric 1.17 reports some of its operations as
  // failed, but not those that waited for an acknowledgement. After a while the rest is recovered
  // without their events.
  if (!link.up && !link.posts.empty() && state_.now_ns - link.down_ns > kAbandonNs &&
      rail.cut(address)) {
    abandon_posts(peer, link);
  }
  if (!link.up && !link.probing && state_.now_ns > link.probe_at_ns && peer.status == Status::Ok) {
    link.probe_at_ns = state_.now_ns + kProbeIntervalNs;
    const fabric::LinkHealth health = rail.examine(address, state_.options.rail_stall_ms);
    if (health != fabric::LinkHealth::Dead && health != fabric::LinkHealth::NicDown) {
      static_cast<void>(probe(peer, link));
    }
  }
}

// A tick costs time only for peers that have something in flight or a fault, and none for thousands
// of idle ones.
void Recovery::tick() {
  has_seen_opening_ = false;
  check_nics();
  for (std::size_t i = 0; i < state_.watched.size();) {
    Peer& peer = *state_.peers[state_.watched[i]];
    if (peer.status == Status::Ok) {
      check_peer(peer);
    }
    if (needs_watch(peer)) {
      ++i;
    } else {
      peer.watched = false;
      state_.watched[i] = state_.watched.back();
      state_.watched.pop_back();
    }
  }
}

void Recovery::check_peer(Peer& peer) {
  for (RailLink& link : peer.links) {
    check_link(peer, link);
  }
  outbox_.check_kept(peer);
  const bool unreachable = peer.unreachable_since_ns != 0 && !state_.is_starting;
  if (unreachable &&
      state_.now_ns - peer.unreachable_since_ns > state_.options.peer_lost_ms * kNsPerMs) {
    log::error("PE {} is lost: none of its {} rails was reached for {} ms; operations to it fail",
               peer.pe.value, peer.rails.size(), state_.options.peer_lost_ms);
    lose(peer);
  }
}

// Links::on_posted, set_down and await_opening watch a peer again.
bool Recovery::needs_watch(const Peer& peer) {
  const auto is_busy = [](const RailLink& link) {
    return !link.up || link.opening || !link.posts.empty();
  };
  return peer.status == Status::Ok &&
         (!peer.kept.empty() || std::ranges::any_of(peer.links, is_busy));
}

void Recovery::lose_faulty() {
  for (const std::uint32_t pe : state_.faulty) {
    Peer& peer = *state_.peers[pe];
    if (peer.status == Status::Ok) {
      if (peer.refuses_messages) {
        log::error(
            "PE {} is lost: messages to it fail on all rails ({}); operations to it fail. "
            "weft-info --doctor tests the NICs; WEFT_NICS and WEFT_PROVIDER choose others",
            pe, peer.fault);
      } else {
        log::warn(
            "PE {} is lost: it sent an invalid message ({}); operations to it fail. Run the same "
            "version "
            "of Weft on all PEs; if it is the same, look for memory corruption in PE {}",
            pe, peer.fault, pe);
      }
      lose(peer);
    }
  }
  state_.faulty.clear();
}

void Recovery::lose_ended(Peer& peer) {
  if (peer.status == Status::Ok) {
    log::warn("PE {} is lost: its process has ended; operations to it fail", peer.pe.value);
    forget(peer);
  }
}

void Recovery::lose(Peer& peer) {
  for (const RailLink& link : peer.links) {
    state_.rails[link.local.value].rail->cut(peer.rails[link.remote.value].address);
  }
  forget(peer);
}

void Recovery::forget(Peer& peer) {
  peer.status = Status::PeerLost;
  outbox_.drop(peer);
  for (PieceRecord* piece : peer.recovering) {
    sender_.drop_piece(piece);
  }
  peer.recovering.clear();
  sender_.fail_all(peer);
}

}  // namespace weft::transport::rails
