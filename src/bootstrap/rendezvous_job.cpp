#include "src/bootstrap/rendezvous_job.hpp"

#include <algorithm>
#include <limits>

#include "src/base/log.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {
namespace {

Blob abort_payload(const Error& failure) {
  FieldWriter fields;
  fields.u32(static_cast<std::uint32_t>(failure.status())).text(failure.what());
  return fields.bytes();
}

// As waits of operations do (rma/waiter.hpp).
constexpr std::chrono::seconds kReportAfter{10};

Blob end_payload(int status) {
  return FieldWriter().u32(static_cast<std::uint32_t>(status)).bytes();
}

}  // namespace

SharedFrame frame_of(Message type, std::span<const std::byte> payload) {
  return share_frame(static_cast<std::uint16_t>(type), payload);
}

RendezvousJob::RendezvousJob(Options options, Tell tell)
    : options_(std::move(options)),
      tell_(std::move(tell)),
      members_(options_.pe_count),
      has_arrived_(options_.pe_count),
      blobs_(options_.pe_count) {}

std::string RendezvousJob::reason_to_refuse(Pe pe, std::uint32_t pe_count) const {
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

bool RendezvousJob::has_any_joined() const {
  return std::ranges::any_of(members_, &Member::has_joined);
}

void RendezvousJob::join(Pe pe) {
  members_[pe.value].has_joined = true;
  if (end_status_) {
    tell_(pe, frame_of(Message::End, end_payload(*end_status_)));
    return;
  }
  if (failure_) {
    tell_(pe, frame_of(Message::Abort, abort_payload(*failure_)));
    return;
  }
  arrive(pe, {});
}

void RendezvousJob::handle(Pe pe, const BootstrapFrame& frame) {
  if (frame.type == static_cast<std::uint16_t>(Message::Leave)) {
    members_[pe.value].has_left = true;
    const std::span why(frame.payload);
    members_[pe.value].why_left = {reinterpret_cast<const char*>(why.data()), why.size()};
    check_absent();
    return;
  }
  if (frame.type == static_cast<std::uint16_t>(Message::Rest)) {
    members_[pe.value].is_resting = true;
    ++members_[pe.value].rest_count;
    return;
  }
  FieldReader fields(frame.payload);
  if (frame.type == static_cast<std::uint16_t>(Message::End)) {
    end_all(static_cast<int>(fields.u32()));
    return;
  }
  const bool is_expected = frame.type == static_cast<std::uint16_t>(Message::Gather) &&
                           fields.u32() == round_ && !has_arrived_[pe.value];
  if (has_ended()) {
    return;  // its Abort or End is in flight, and ends the round that it begins
  }
  if (!is_expected) {
    fail(Status::InvalidArgument, "a frame out of turn");
  }
  arrive(pe, Blob(fields.rest().begin(), fields.rest().end()));
}

void RendezvousJob::note_closed(Pe pe) {
  if (members_[pe.value].is_resting) {
    members_[pe.value].has_left = true;
    check_absent();
    return;
  }
  if (members_[pe.value].has_left || end_status_) {
    return;
  }
  if (options_.announces_losses) {
    broadcast(Message::Lost, FieldWriter().u32(pe.value).bytes());
  }
  if (!failure_) {
    first_lost_ = pe;
    fail_all(Status::PeerLost,
             fmt::format("PE {} is lost: its connection to the rendezvous closed", pe.value));
  }
}

// All PEs are told before the first one exits, so that none takes another for lost.
void RendezvousJob::end_all(int status) {
  end_status_ = end_status_.value_or(status);  // the first status wins
  broadcast(Message::End, end_payload(*end_status_));
}

void RendezvousJob::arrive(Pe pe, Blob blob) {
  members_[pe.value].is_resting = false;
  has_arrived_[pe.value] = true;
  blobs_[pe.value] = std::move(blob);
  ++arrived_count_;
  if (!round_deadline_) {
    const Clock::time_point now = Clock::now();
    round_deadline_ = now + options_.timeout;
    report_at_ = now + kReportAfter;
  }
  if (arrived_count_ == options_.pe_count) {
    complete_round();
  } else {
    check_absent();
  }
}

void RendezvousJob::complete_round() {
  if (round_ == 0) {
    broadcast(Message::Start, {});
  } else {
    broadcast(Message::Gathered, FieldWriter().u32(round_).raw(pack_blobs(blobs_)).bytes());
  }
  ++round_;
  arrived_count_ = 0;
  round_deadline_.reset();
  report_at_.reset();
  has_arrived_.assign(options_.pe_count, false);
  blobs_.assign(options_.pe_count, {});
}

// Fails a round that a PE can no longer join, without waiting for the deadline.
void RendezvousJob::check_absent() {
  if (arrived_count_ == 0 || has_ended()) {
    return;
  }
  for (const Pe pe : missing()) {
    const Member& member = members_[pe.value];
    if (member.has_left) {
      fail_all(Status::PeerLost,
               fmt::format("PE {} has left the job ({}) while {} of {} wait for it", pe.value,
                           member.why_left.empty() ? std::string("it finalized")
                                                   : "it could not start: " + member.why_left,
                           arrived_count_, options_.pe_count));
      return;
    }
    if (!member.has_joined && !member.exit.empty()) {
      first_lost_ = pe;
      fail_all(Status::PeerLost,
               fmt::format("PE {} {} before it joined the job", pe.value, member.exit));
      return;
    }
  }
}

void RendezvousJob::note_exit(Pe pe, const std::string& how) {
  members_[pe.value].exit = how;
  check_absent();
}

void RendezvousJob::fail_all(Status status, const std::string& why) {
  failure_ = Error(status, why);
  log::info("the rendezvous at {} ends the job: {}", options_.rendezvous, why);
  broadcast(Message::Abort, abort_payload(*failure_));
}

void RendezvousJob::broadcast(Message type, std::span<const std::byte> payload) {
  const SharedFrame frame = frame_of(type, payload);
  const auto tell = [this, &frame](Pe pe) {
    if (!members_[pe.value].has_left) {
      tell_(pe, frame);
    }
  };
  for (std::uint32_t pe = 0; pe < members_.size(); ++pe) {
    if (Pe(pe) != options_.host) {
      tell(Pe(pe));
    }
  }
  if (options_.host) {
    tell(*options_.host);
  }
}

void RendezvousJob::say_goodbye() {
  broadcast(Message::Leave, {});
}

std::uint32_t RendezvousJob::rest_count() const {
  std::uint32_t count = std::numeric_limits<std::uint32_t>::max();
  for (const Member& member : members_) {
    if (!member.has_left) {
      count = std::min(count, member.rest_count);
    }
  }
  return count;
}

std::uint32_t RendezvousJob::resting_count() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      members_, [](const Member& member) { return member.is_resting && !member.has_left; }));
}

Clock::time_point RendezvousJob::deadline() const {
  return has_ended() ? Clock::time_point::max()
                     : round_deadline_.value_or(Clock::time_point::max());
}

Clock::time_point RendezvousJob::next_check() const {
  return has_ended() ? Clock::time_point::max()
                     : std::min(deadline(), report_at_.value_or(deadline()));
}

void RendezvousJob::check_deadline(Clock::time_point now) {
  if (!has_ended() && report_at_.value_or(deadline()) <= now && now < deadline()) {
    report_at_.reset();
    log::warn("init has been waiting for {} for {}; it fails after {} (WEFT_BOOTSTRAP_TIMEOUT)",
              format_pes(missing()),
              format_seconds(std::chrono::milliseconds(kReportAfter).count()),
              format_seconds(options_.timeout.count()));
  }
  if (deadline() <= now) {
    fail_all(Status::Timeout, fmt::format("{} did not come within {}", format_pes(missing()),
                                          format_seconds(options_.timeout.count())));
  }
}

std::vector<Pe> RendezvousJob::missing() const {
  std::vector<Pe> pes;
  for (std::uint32_t i = 0; i < options_.pe_count; ++i) {
    if (!has_arrived_[i]) {
      pes.emplace_back(i);
    }
  }
  return pes;
}

}  // namespace weft::bootstrap
