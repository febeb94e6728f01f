// The rendezvous' handling of messages from PEs: admission, and the rounds in which their blobs are gathered.
#include "src/base/log.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/rendezvous_server.hpp"

namespace weft::bootstrap {
namespace {

SharedFrame message(Message type, std::span<const std::byte> payload) {
  return share_frame(static_cast<std::uint16_t>(type), payload);
}

Blob abort_payload(const Error& failure) {
  FieldWriter fields;
  fields.u32(static_cast<std::uint32_t>(failure.status())).text(failure.what());
  return fields.bytes();
}

Blob end_payload(int status) {
  return FieldWriter().u32(static_cast<std::uint32_t>(status)).bytes();
}

Digest to_digest(std::span<const std::byte> bytes) {
  Digest digest{};
  std::ranges::copy(bytes, digest.begin());
  return digest;
}

}  // namespace

void RendezvousServer::handle_frames(Client& client) {
  while (!client.is_refused) {
    std::optional<Frame> frame = client.connection.next_frame();
    if (!frame) {
      return;
    }
    if (client.pe) {
      handle_member(client, std::move(*frame));
    } else {
      handle_hello(client, *frame);
    }
  }
}

void RendezvousServer::handle_hello(Client& client, const Frame& frame) {
  if (frame.type != static_cast<std::uint16_t>(Message::Hello)) {
    fail(Status::InvalidArgument, "it did not begin with who it is");
  }
  FieldReader fields(frame.payload);
  Handshake handshake;
  handshake.server_nonce = client.nonce;
  handshake.pe = Pe(fields.u32());
  handshake.pe_count = fields.u32();
  handshake.client_nonce = to_digest(fields.raw(sizeof(Digest)));
  const std::span proof = fields.raw(sizeof(Digest));
  if (!equal_in_constant_time(proof, client_proof(options_.secret, handshake))) {
    // The client is told, because it may be a PE with the wrong environment; an attacker learns nothing new.
    send(client, message(Message::Refused,
                         FieldWriter().text("wrong job secret (WEFT_JOB_SECRET)").bytes()));
    fail(Status::InvalidArgument, "wrong job secret");
  }
  const std::string why = reason_to_refuse(handshake.pe, handshake.pe_count);
  if (!why.empty()) {
    refuse(client, why);
    return;
  }
  send(client, message(Message::Welcome, server_proof(options_.secret, handshake)));
  join(client, handshake.pe);
}

std::string RendezvousServer::reason_to_refuse(Pe pe, std::uint32_t pe_count) const {
  if (pe_count != options_.pe_count) {
    return fmt::format("it was started for a job of {} PEs, but this job has {}", pe_count,
                       options_.pe_count);
  }
  if (pe.value >= options_.pe_count) {
    return fmt::format("the job's PEs are 0 to {}", options_.pe_count - 1);
  }
  if (members_[pe.value].has_joined) {
    return fmt::format("another process has joined as PE {} already; give each its own number",
                       pe.value);
  }
  return {};
}

void RendezvousServer::refuse(Client& client, const std::string& why) {
  log::warn("the rendezvous at {} refused {}: {}", to_string(address()), client.name, why);
  client.is_refused = true;
  send(client, message(Message::Refused, FieldWriter().text(why).bytes()));
}

void RendezvousServer::join(Client& client, Pe pe) {
  client.pe = pe;
  client.connection.set_payload_bytes_max(kBlobBytesMax);
  members_[pe.value].client = &client;
  members_[pe.value].has_joined = true;
  if (end_status_) {
    send(client, message(Message::End, end_payload(*end_status_)));
    return;
  }
  if (failure_) {
    send(client, message(Message::Abort, abort_payload(*failure_)));
    return;
  }
  arrive(pe, {});
}

void RendezvousServer::handle_member(Client& client, Frame frame) {
  Member& member = members_[client.pe->value];
  if (frame.type == static_cast<std::uint16_t>(Message::Leave)) {
    member.has_left = true;
    check_absent();
    return;
  }
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(Message::End)) {
    end_all(static_cast<int>(fields.u32()));
    return;
  }
  const bool is_expected = frame.type == static_cast<std::uint16_t>(Message::Gather) &&
                           fields.u32() == round_ && !has_arrived_[client.pe->value];
  if (failure_ || end_status_) {
    return;  // its Abort or End is in flight, and ends the round that it begins
  }
  if (!is_expected) {
    fail(Status::InvalidArgument, "a frame out of turn");
  }
  arrive(*client.pe, Blob(fields.rest().begin(), fields.rest().end()));
}

// All PEs are told before the first one exits, so that none takes another for lost.
void RendezvousServer::end_all(int status) {
  end_status_ = end_status_.value_or(status);  // the first status wins
  broadcast(Message::End, end_payload(*end_status_));
}

void RendezvousServer::arrive(Pe pe, Blob blob) {
  has_arrived_[pe.value] = true;
  blobs_[pe.value] = std::move(blob);
  ++arrived_count_;
  if (!round_deadline_) {
    round_deadline_ = Clock::now() + options_.timeout;
  }
  if (arrived_count_ == options_.pe_count) {
    complete_round();
  } else {
    check_absent();
  }
}

void RendezvousServer::complete_round() {
  if (round_ == 0) {
    broadcast(Message::Start, {});
  } else {
    broadcast(Message::Gathered, FieldWriter().u32(round_).raw(pack_blobs(blobs_)).bytes());
  }
  ++round_;
  arrived_count_ = 0;
  round_deadline_.reset();
  has_arrived_.assign(options_.pe_count, false);
  blobs_.assign(options_.pe_count, {});
}

// Fails a round that a PE can no longer join, without waiting for the deadline.
void RendezvousServer::check_absent() {
  if (arrived_count_ == 0 || failure_ || end_status_) {
    return;
  }
  for (const Pe pe : missing()) {
    const Member& member = members_[pe.value];
    if (member.has_left) {
      fail_job(Status::PeerLost,
               fmt::format("PE {} has left the job (it finalized) while {} of {} wait for it",
                           pe.value, arrived_count_, options_.pe_count));
      return;
    }
    if (!member.has_joined && !member.exit.empty()) {
      first_lost_ = pe;
      fail_job(Status::PeerLost,
               fmt::format("PE {} {} before it joined the job", pe.value, member.exit));
      return;
    }
  }
}

void RendezvousServer::note_exit(Pe pe, const std::string& how) {
  members_[pe.value].exit = how;
  check_absent();
}

void RendezvousServer::fail_job(Status status, const std::string& why) {
  failure_ = Error(status, why);
  log::info("the rendezvous at {} ends the job: {}", to_string(address()), why);
  broadcast(Message::Abort, abort_payload(*failure_));
}

void RendezvousServer::broadcast(Message type, std::span<const std::byte> payload) {
  const SharedFrame frame = message(type, payload);
  const auto tell = [this, &frame](const Member& member) {
    if (member.client != nullptr && !member.has_left) {
      send(*member.client, frame);
    }
  };
  for (std::uint32_t pe = 0; pe < members_.size(); ++pe) {
    if (Pe(pe) != options_.host) {
      tell(members_[pe]);
    }
  }
  if (options_.host) {
    tell(members_[options_.host->value]);
  }
}

void RendezvousServer::say_goodbye() {
  broadcast(Message::Leave, {});
}

std::vector<Pe> RendezvousServer::missing() const {
  std::vector<Pe> pes;
  for (std::uint32_t i = 0; i < options_.pe_count; ++i) {
    if (!has_arrived_[i]) {
      pes.emplace_back(i);
    }
  }
  return pes;
}

}  // namespace weft::bootstrap
