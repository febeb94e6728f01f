#include "src/bootstrap/tcp_bootstrap.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <poll.h>

#include "src/base/log.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {
namespace {

// The rendezvous knows which PEs are missing and this end does not, so its error must arrive first.
constexpr std::chrono::seconds kServersHeadStart{5};

// The time from the first PE's exit by end_job until all PEs know of it, with a generous margin.
constexpr std::chrono::milliseconds kNewsLimit{300};
// A watching thread holds the connection only briefly; a call holds it for its whole duration.
constexpr std::chrono::milliseconds kBusyLimit{100};
// The rendezvous may be on a host that no longer answers; the PE exits in any case.
constexpr std::chrono::milliseconds kEndLimit{2000};

}  // namespace

TcpBootstrap::TcpBootstrap(Options options) : options_(std::move(options)) {
  const auto start = Clock::now();
  deadline_ = start + options_.timeout;
  options_.alternatives.insert(options_.alternatives.begin(), options_.address);
  Dialled dialled = dial_any(options_.alternatives, deadline_);
  options_.address = std::move(dialled.address);
  connection_ = std::make_unique<Connection>(std::move(dialled.socket), kGatheredBytesMax);
  deadline_ = Clock::now() + options_.timeout + kServersHeadStart;
  greet();
  static_cast<void>(expect(Message::Start));
  round_ = 1;
}

TcpBootstrap::~TcpBootstrap() {
  // Not after a failure: then leaving means nothing any more. A full socket must not delay an exit.
  if (!failure_) {
    connection_->send(share_frame(static_cast<std::uint16_t>(Message::Leave),
                                  std::as_bytes(std::span(why_left_))));
  }
}

void TcpBootstrap::give_up(std::string_view why) {
  constexpr std::size_t kCharactersMax = 500;
  why_left_ = why.substr(0, kCharactersMax);
}

// Another PE has ended the job: not an error of this one, so nothing is logged.
void TcpBootstrap::end_process(const BootstrapFrame& end) const {
  FieldReader fields(end.payload);
  const int status = static_cast<int>(fields.u32());
  static_cast<void>(std::fflush(nullptr));
  if (options_.farewell != nullptr) {
    options_.farewell();
  }
  // Exits without running destructors: other threads still use the objects.
  std::_Exit(status);
}

void TcpBootstrap::greet() {
  const BootstrapFrame challenge = expect(Message::Challenge);
  Handshake handshake{.server_nonce = {},
                      .client_nonce = random_digest(),
                      .pe = options_.pe,
                      .pe_count = options_.pe_count};
  const std::span nonce = FieldReader(challenge.payload).raw(sizeof(Digest));
  std::ranges::copy(nonce, handshake.server_nonce.begin());
  FieldWriter hello;
  hello.u32(options_.pe.value).u32(options_.pe_count).raw(handshake.client_nonce);
  hello.raw(client_proof(options_.secret, handshake));
  send(Message::Hello, hello.bytes());
  const BootstrapFrame welcome = expect(Message::Welcome);
  if (!equal_in_constant_time(welcome.payload, server_proof(options_.secret, handshake))) {
    fail_for_good(Status::InvalidArgument, fmt::format("{} does not know the job's secret; it "
                                                       "belongs to another job",
                                                       where()));
  }
}

std::vector<Blob> TcpBootstrap::allgather(std::span<const std::byte> mine) {
  const std::unique_lock lock(call_);
  if (failure_) {
    throw Error(*failure_);
  }
  if (mine.size() > kBlobBytesMax - sizeof(round_)) {
    fail(Status::InvalidArgument, "allgather of {} bytes: a PE may give at most {}", mine.size(),
         kBlobBytesMax - sizeof(round_));
  }
  deadline_ = Clock::now() + options_.timeout + kServersHeadStart;
  send(Message::Gather, FieldWriter().u32(round_).raw(mine).bytes());
  const BootstrapFrame gathered = expect(Message::Gathered);
  FieldReader fields(gathered.payload);
  const std::uint32_t round = fields.u32();
  std::vector<Blob> blobs = unpack_blobs(fields.rest());
  WEFT_CHECK(round == round_ && blobs.size() == options_.pe_count,
             "round {} of {} blobs came in round {}", round, blobs.size(), round_);
  ++round_;
  return blobs;
}

// Its next allgather says that it takes part again.
void TcpBootstrap::take_part(bool takes_part) {
  const std::unique_lock lock(call_);
  if (!takes_part && !failure_) {
    connection_->send(share_frame(static_cast<std::uint16_t>(Message::Rest), {}));
  }
}

void TcpBootstrap::end_job(int status) {
  const std::unique_lock lock(call_, kBusyLimit);
  if (!lock.owns_lock() || failure_) {
    return;  // init or finalize is in progress in another thread, or the job has already failed
  }
  try {
    deadline_ = Clock::now() + kEndLimit;
    send(Message::End, FieldWriter().u32(static_cast<std::uint32_t>(status)).bytes());
    listen_for_end(kEndLimit);
  } catch (const Error& error) {
    log::warn("the job's end could not be announced: {}", error.what());
  }
}

void TcpBootstrap::follow_end() {
  const std::unique_lock lock(call_, std::try_to_lock);
  if (!lock.owns_lock() || failure_) {
    return;  // the call in progress reads the message, or has already failed
  }
  try {
    listen_for_end(kNewsLimit);
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
}

TcpBootstrap::News TcpBootstrap::read_news() {
  const std::unique_lock lock(call_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return News::Busy;
  }
  if (failure_) {
    return News::Over;
  }
  bool is_open = true;
  try {
    is_open = listen_for_end(std::chrono::milliseconds(0));
  } catch (const Error& error) {
    failure_ = error;
  }
  if (has_host_left_) {
    return News::Over;
  }
  is_open_ = is_open_ && is_open;
  if (!is_open && !failure_) {
    failure_ = Error(Status::PeerLost,
                     fmt::format("{} has closed the connection; its host has ended", where()));
  }
  return failure_ ? News::Failure : News::None;
}

void TcpBootstrap::take_news(const BootstrapFrame& frame) {
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(Message::Leave)) {
    has_host_left_ = true;
  } else if (frame.type == static_cast<std::uint16_t>(Message::End)) {
    end_process(frame);
  } else if (frame.type == static_cast<std::uint16_t>(Message::Lost)) {
    lost_.emplace_back(fields.u32());
  } else if (frame.type == static_cast<std::uint16_t>(Message::Abort)) {
    const auto status = static_cast<Status>(fields.u32());
    failure_ = Error(status, fields.text());
  }
}

// Also after a failure, as more PEs may be lost. Once the rendezvous itself is gone nobody tells
// who else is.
bool TcpBootstrap::has_lost(Pe pe) {
  const std::unique_lock lock(call_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;  // the call in progress reads the message
  }
  try {
    while (is_open_ && wait_ready(connection_->input(), POLLIN, Clock::now())) {
      is_open_ = connection_->receive();
      while (const auto frame = connection_->next_frame()) {
        take_news(*frame);
      }
    }
  } catch (const Error& error) {
    log::debug("{}", error.what());
    is_open_ = false;
  }
  return std::ranges::find(lost_, pe) != lost_.end() || (!is_open_ && !has_host_left_);
}

bool TcpBootstrap::listen_for_end(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  bool is_open = true;
  while (true) {
    while (const auto frame = connection_->next_frame()) {
      take_news(*frame);
    }
    if (failure_ || !is_open || !wait_ready(connection_->input(), POLLIN, deadline)) {
      return is_open;
    }
    is_open = connection_->receive();  // data that arrived before the close is in the next frames
  }
}

BootstrapFrame TcpBootstrap::expect(Message type) {
  BootstrapFrame frame = receive(type);
  if (frame.type == static_cast<std::uint16_t>(type)) {
    return frame;
  }
  if (frame.type == static_cast<std::uint16_t>(Message::Leave)) {
    fail_for_good(Status::PeerLost, fmt::format("the host of {} has left the job", where()));
  }
  if (frame.type == static_cast<std::uint16_t>(Message::End)) {
    end_process(frame);
  }
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(Message::Abort)) {
    const auto status = static_cast<Status>(fields.u32());
    fail_for_good(status, fields.text());
  }
  if (frame.type == static_cast<std::uint16_t>(Message::Refused)) {
    fail_for_good(Status::InvalidArgument,
                  fmt::format("{} refused PE {}: {}", where(), options_.pe.value, fields.text()));
  }
  fail_for_good(Status::Internal, fmt::format("{} sent frame {} where {} was due", where(),
                                              frame.type, static_cast<std::uint16_t>(type)));
}

BootstrapFrame TcpBootstrap::receive(Message awaited) {
  bool is_open = true;
  while (true) {
    try {
      while (std::optional<BootstrapFrame> frame = connection_->next_frame()) {
        if (frame->type != static_cast<std::uint16_t>(Message::Lost)) {
          return std::move(*frame);
        }
        take_news(*frame);
      }
    } catch (const Error& error) {
      fail_for_good(error.status(), fmt::format("{}: {}", where(), error.what()));
    }
    if (!is_open) {
      fail_for_good(Status::PeerLost,
                    fmt::format("{} closed the connection; its host (weft-run, or else PE 0) has "
                                "ended",
                                where()));
    }
    if (!wait_ready(connection_->input(), POLLIN, deadline_)) {
      fail_for_good(
          Status::Timeout,
          fmt::format("{} did not answer within {} (awaiting frame {}); is its host alive, "
                      "and is it a Weft rendezvous?",
                      where(), format_seconds(options_.timeout.count()),
                      static_cast<std::uint16_t>(awaited)));
    }
    is_open = connection_->receive();
  }
}

void TcpBootstrap::send(Message type, std::span<const std::byte> payload) {
  connection_->send(share_frame(static_cast<std::uint16_t>(type), payload));
  while (connection_->has_unsent()) {
    if (!wait_ready(connection_->output(), POLLOUT, deadline_)) {
      fail_for_good(Status::Timeout, fmt::format("{} takes no more bytes", where()));
    }
    connection_->flush();
  }
}

void TcpBootstrap::fail_for_good(Status status, const std::string& why) {
  failure_ = Error(status, fmt::format("bootstrap of PE {} failed: {}", options_.pe.value, why));
  throw Error(*failure_);
}

std::string TcpBootstrap::where() const {
  return "the rendezvous at " + to_string(options_.address);
}

}  // namespace weft::bootstrap
