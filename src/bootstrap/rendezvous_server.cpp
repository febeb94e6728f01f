#include "src/bootstrap/rendezvous_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "src/base/log.hpp"
#include "src/base/open_files.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {
namespace {

// The most connections, beyond the job's own, that may be waiting to authenticate.
constexpr std::size_t kStrangersMax = 64;
// Beside the PEs' connections: what the process opens meanwhile.
constexpr std::uint64_t kOtherFiles = 8;
// How long to wait for a free descriptor before the next attempt to accept.
constexpr std::chrono::milliseconds kAcceptPause{100};

timespec to_timespec(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = static_cast<time_t>(seconds.count()),
          .tv_nsec = static_cast<long>((time - seconds).count())};
}

Digest to_digest(std::span<const std::byte> bytes) {
  Digest digest{};
  std::ranges::copy(bytes, digest.begin());
  return digest;
}

}  // namespace

RendezvousServer::RendezvousServer(const Address& address, Options options)
    : RendezvousServer(listen_on(address), std::move(options)) {}

RendezvousServer::RendezvousServer(Listener listener, Options options)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      joined_(options_.pe_count, nullptr),
      job_({.rendezvous = to_string(listener_.address),
            .pe_count = options_.pe_count,
            .timeout = options_.timeout,
            .host = options_.host,
            .announces_losses = options_.announces_losses},
           [this](Pe pe, const SharedFrame& frame) { tell(pe, frame); }) {
  WEFT_CHECK(options_.pe_count > 0, "a rendezvous for no PE");
  if (!epoll_.is_open() || !timer_.is_open()) {
    fail("epoll_create1 or timerfd_create failed: {}; {}", errno_words(errno),
         open_files_hint(options_.pe_count + kOtherFiles));
  }
  if (!has_room_for_open_files(options_.pe_count + kOtherFiles)) {
    fail("the rendezvous of {} PEs needs a connection to each: {}", options_.pe_count,
         open_files_hint(options_.pe_count + kOtherFiles));
  }
  watch(listener_.socket.get(), EPOLLIN, EPOLL_CTL_ADD);
  watch(timer_.get(), EPOLLIN, EPOLL_CTL_ADD);
}

void RendezvousServer::watch(int fd, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) != 0) {
    fail("epoll_ctl failed on the rendezvous' descriptor {}: {}", fd, errno_words(errno));
  }
}

void RendezvousServer::serve(std::chrono::milliseconds wait) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(wait.count()));
  if (count < 0 && errno != EINTR) {
    fail("epoll_wait failed in the rendezvous: {}", errno_words(errno));
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == listener_.socket.get()) {
      accept_all();
    } else if (event.data.fd != timer_.get()) {
      handle_client(event.data.fd, event.events);
    }
  }
  check_deadlines();
  arm_timer();
}

void RendezvousServer::accept_all() {
  while (true) {
    FileDescriptor socket = accept_from(listener_);
    if (socket.is_open()) {
      add_client(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE) {
      pause_accepting(errno);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// A connection that cannot be accepted waits in the kernel's queue. One that was accepted and has
// not authenticated may be a PE's, so none is dropped before its time is over.
void RendezvousServer::pause_accepting(int error) {
  accept_again_ = Clock::now() + kAcceptPause;
  watch(listener_.socket.get(), 0, EPOLL_CTL_MOD);
  if (!has_paused_) {
    has_paused_ = true;
    log::warn(
        "the rendezvous at {} cannot accept another connection now: {}; {} are open, for {} PEs; "
        "{}",
        to_string(address()), errno_words(error), clients_.size(), options_.pe_count,
        error == EMFILE ? open_files_hint(options_.pe_count + kOtherFiles)
                        : "the whole system's limit is fs.file-max");
  }
}

void RendezvousServer::add_client(FileDescriptor socket) {
  if (clients_.size() >= options_.pe_count + kStrangersMax) {
    drop_oldest_stranger();
  }
  const int fd = socket.get();
  auto client = std::make_unique<Client>(Client{
      .connection = Connection(std::move(socket), kHandshakeBytesMax),
      .name = peer_name(fd),
      .nonce = random_digest(),
      .deadline = Clock::now() + options_.handshake_timeout,
      .pe = std::nullopt,
  });
  Client& added = *clients_.emplace(fd, std::move(client)).first->second;
  watch(fd, EPOLLIN, EPOLL_CTL_ADD);
  send(added, frame_of(Message::Challenge, added.nonce));
}

void RendezvousServer::drop_oldest_stranger() {
  int oldest = -1;
  for (const auto& [fd, client] : clients_) {
    if (!client->pe && (oldest < 0 || client->deadline < clients_.at(oldest)->deadline)) {
      oldest = fd;
    }
  }
  if (oldest >= 0) {
    turn_away(oldest, "too many connections that do not show who they are");
  }
}

void RendezvousServer::handle_client(int fd, std::uint32_t events) {
  const auto found = clients_.find(fd);
  if (found == clients_.end()) {
    return;  // dropped earlier in this batch of events
  }
  Client& client = *found->second;
  try {
    const bool is_open = (events & ~EPOLLOUT) == 0 || client.connection.receive();
    handle_frames(client);
    if (!is_open) {
      lose(fd);
      return;
    }
  } catch (const Error& error) {  // it does not use the protocol
    if (client.pe) {
      lose(fd);
    } else {
      turn_away(fd, error.what());
    }
    return;
  }
  client.connection.flush();
  update_interest(client);
  if (client.is_refused && !client.connection.has_unsent()) {
    clients_.erase(fd);
  }
}

void RendezvousServer::send(Client& client, const SharedFrame& frame) {
  client.connection.send(frame);
  update_interest(client);
}

void RendezvousServer::update_interest(Client& client) {
  if (client.connection.has_unsent() != client.wants_write) {
    client.wants_write = !client.wants_write;
    watch(client.connection.input(), client.wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN,
          EPOLL_CTL_MOD);
  }
}

void RendezvousServer::turn_away(int fd, const std::string& why) {
  const Client& client = *clients_.at(fd);
  ++stranger_count_;
  // One line for all of them: a port scanner must not fill the job's log.
  log::at(stranger_count_ == 1 ? log::Level::Warn : log::Level::Debug,
          "the rendezvous at {} turned away {}: {}; the job goes on{}", to_string(address()),
          client.name, why, stranger_count_ == 1 ? " (later ones are only counted)" : "");
  clients_.erase(fd);
}

void RendezvousServer::lose(int fd) {
  const std::optional<Pe> pe = clients_.at(fd)->pe;
  if (!pe) {
    if (clients_.at(fd)->is_refused) {
      clients_.erase(fd);
    } else {
      turn_away(fd, "it closed before it showed who it is");
    }
    return;
  }
  clients_.erase(fd);
  joined_[pe->value] = nullptr;
  job_.note_closed(*pe);
}

void RendezvousServer::handle_frames(Client& client) {
  while (!client.is_refused) {
    std::optional<BootstrapFrame> frame = client.connection.next_frame();
    if (!frame) {
      return;
    }
    if (client.pe) {
      job_.handle(*client.pe, *frame);
    } else {
      handle_hello(client, *frame);
    }
  }
}

void RendezvousServer::handle_hello(Client& client, const BootstrapFrame& frame) {
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
    // The client is told, because it may be a PE with the wrong environment; an attacker learns
    // nothing new.
    send(client, frame_of(Message::Refused,
                          FieldWriter().text("wrong job secret (WEFT_JOB_SECRET)").bytes()));
    fail(Status::InvalidArgument, "wrong job secret");
  }
  const std::string why = job_.reason_to_refuse(handshake.pe, handshake.pe_count);
  if (!why.empty()) {
    refuse(client, why);
    return;
  }
  send(client, frame_of(Message::Welcome, server_proof(options_.secret, handshake)));
  client.pe = handshake.pe;
  client.connection.set_payload_bytes_max(kBlobBytesMax);
  joined_[handshake.pe.value] = &client;
  job_.join(handshake.pe);
}

void RendezvousServer::refuse(Client& client, const std::string& why) {
  log::warn("the rendezvous at {} refused {}: {}", to_string(address()), client.name, why);
  client.is_refused = true;
  send(client, frame_of(Message::Refused, FieldWriter().text(why).bytes()));
}

void RendezvousServer::tell(Pe pe, const SharedFrame& frame) {
  if (Client* const client = joined_[pe.value]; client != nullptr) {
    send(*client, frame);
  }
}

void RendezvousServer::check_deadlines() {
  const auto now = Clock::now();
  std::vector<int> silent;
  for (const auto& [fd, client] : clients_) {
    if (!client->pe && client->deadline <= now) {
      silent.push_back(fd);
    }
  }
  for (const int fd : silent) {
    turn_away(fd, fmt::format("it said nothing valid for {}",
                              format_seconds(options_.handshake_timeout.count())));
  }
  if (accept_again_ && *accept_again_ <= now) {
    accept_again_.reset();
    watch(listener_.socket.get(), EPOLLIN, EPOLL_CTL_MOD);
  }
  job_.check_deadline(now);
}

void RendezvousServer::arm_timer() {
  auto next = Clock::time_point::max();
  for (const auto& [fd, client] : clients_) {
    if (!client->pe) {
      next = std::min(next, client->deadline);
    }
  }
  next = std::min({next, job_.next_check(), accept_again_.value_or(next)});
  itimerspec when{};  // zero disarms; setting an armed timer also clears its readability
  if (next != Clock::time_point::max()) {
    // steady_clock is CLOCK_MONOTONIC; at least 1 ns, as 0 would disarm.
    when.it_value = to_timespec(std::max(next.time_since_epoch(), Clock::duration(1)));
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace weft::bootstrap
