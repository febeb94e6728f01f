#include "src/transport/faulty/faulty_rail.hpp"

#include <array>
#include <charconv>
#include <string>

#include "src/base/error.hpp"

namespace weft::transport::faulty {
namespace {

constexpr int kInjectedError = 5;  // EIO
constexpr int kNoMemory = 12;      // ENOMEM
constexpr int kNoSuchCall = 38;    // ENOSYS
constexpr int kBadFlags = 260;     // FI_EBADFLAGS of fi_errno(3)
constexpr std::size_t kHeldMax = 256;
constexpr std::size_t kCopiesMax = 4096;

double parse_value(std::string_view text, std::string_view item) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < 0) {
    fail(Status::InvalidArgument, "WEFT_FAULTS: '{}' is not NAME=NUMBER", item);
  }
  return value;
}

void assign(FaultPlan& plan, std::string_view item) {
  const std::size_t equals = std::min(item.find('='), item.size());
  const std::string_view name = item.substr(0, equals);
  const double value = parse_value(item.substr(std::min(equals + 1, item.size())), item);
  if (name == "seed") {
    plan.seed = static_cast<std::uint64_t>(value);
  } else if (name == "refuse") {
    plan.refuse = value;
  } else if (name == "delay") {
    plan.delay = value;
  } else if (name == "reorder") {
    plan.reorder = value;
  } else if (name == "kill") {
    plan.kill_every = static_cast<std::uint64_t>(value);
  } else if (name == "deny") {
    plan.deny = value;
  } else if (name == "no_inject") {
    plan.no_inject = value != 0;
  } else if (name == "no_immediate") {
    plan.no_immediate = value != 0;
  } else {
    fail(Status::InvalidArgument,
         "WEFT_FAULTS: there is no fault '{}'; use seed, refuse, delay, reorder, kill, deny, "
         "no_inject, "
         "no_immediate",
         name);
  }
}

}  // namespace

FaultPlan parse_faults(std::string_view text) {
  FaultPlan plan;
  if (!text.empty()) {
    plan.seed = 1;
  }
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    assign(plan, text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return plan;
}

FaultyRail::FaultyRail(std::unique_ptr<fabric::Rail> inner, FaultPlan plan, std::uint64_t number)
    : inner_(std::move(inner)),
      plan_(plan),
      limits_(inner_->limits()),
      random_(plan.seed * 1000003 + number) {
  limits_.is_claim = limits_.is_claim || plan.no_inject || plan.no_immediate;
}

bool FaultyRail::is_injected(const Held& operation) const {
  const std::size_t most =
      operation.kind == Kind::Write ? limits_.inject_write_bytes : limits_.inject_bytes;
  return operation.kind != Kind::Read && !operation.local.on_device &&
         operation.local.bytes <= most;
}

int FaultyRail::refusal_of(const Held& operation) noexcept {
  refused_action_ = operation.kind == Kind::Write ? "fi_writemsg" : "fi_read";
  if (operation.immediate && plan_.no_immediate) {
    return kBadFlags;
  }
  if (operation.kind == Kind::Write && plan_.no_inject && is_injected(operation)) {
    return kNoSuchCall;
  }
  // Spares the few bytes of a probe.
  if (operation.kind != Kind::Send && plan_.deny > 0 && operation.local.bytes > 8 &&
      chance(plan_.deny)) {
    refused_action_ = fabric::kRegisterAction;
    return kNoMemory;
  }
  return 0;
}

bool FaultyRail::chance(double probability) {
  return std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

void FaultyRail::count_post() noexcept {
  if (plan_.kill_every != 0 && ++posts_ % plan_.kill_every == 0) {
    dead_polls_left_ = plan_.dead_polls;
  }
}

// The owner may reuse the memory of an injected operation when we return, so a held operation needs
// a copy.
fabric::PostResult FaultyRail::accept(Held operation) noexcept {
  if (chance(plan_.refuse) || held_.size() >= kHeldMax) {
    return fabric::PostResult::Full;
  }
  refusal_ = refusal_of(operation);
  if (refusal_ != 0) {
    return fabric::PostResult::Refused;
  }
  count_post();
  if (dead_polls_left_ > 0) {
    ready_.push_back(
        {.kind = fabric::EventKind::Failed, .context = operation.context, .error = kInjectedError});
    return fabric::PostResult::Posted;
  }
  if (!chance(plan_.delay)) {
    return hand_on(operation);
  }
  if (is_injected(operation)) {
    const auto* bytes = static_cast<const std::byte*>(operation.local.address);
    operation.injected.assign(bytes, bytes + operation.local.bytes);
  }
  held_.push_back(std::move(operation));
  return fabric::PostResult::Posted;
}

fabric::PostResult FaultyRail::hand_on(Held& operation) noexcept {
  fabric::LocalMemory local = operation.local;
  if (!operation.injected.empty()) {
    local.address = operation.injected.data();
  }
  switch (operation.kind) {
    case Kind::Write:
      return inner_->post_write(local, operation.remote, operation.immediate, operation.context);
    case Kind::Read:
      return inner_->post_read(local, operation.remote, operation.context);
    case Kind::Send:
      return inner_->post_send(local, operation.remote.peer, operation.context);
  }
  return fabric::PostResult::Failed;
}

void FaultyRail::release_some() noexcept {
  for (std::size_t i = 0; i < 4 && !held_.empty(); ++i) {
    if (chance(plan_.delay)) {
      continue;
    }
    const std::size_t index = chance(plan_.reorder) ? random_() % held_.size() : 0;
    Held operation = std::move(held_[index]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    const fabric::PostResult result = hand_on(operation);
    if (result == fabric::PostResult::Full) {
      held_.push_front(std::move(operation));
      return;
    }
    if (result == fabric::PostResult::Failed || result == fabric::PostResult::Refused) {
      ready_.push_back({.kind = fabric::EventKind::Failed,
                        .context = operation.context,
                        .error = inner_->last_error()});
    }
    if (!operation.injected.empty()) {
      sent_copies_.push_back(std::move(operation.injected));
    }
    if (sent_copies_.size() > kCopiesMax) {
      sent_copies_.pop_front();
    }
  }
}

// Arrivals may be reordered. A dying rail loses completion events, not the bytes.
void FaultyRail::keep_or_pass(const fabric::Event& event) noexcept {
  const bool arrived =
      event.kind == fabric::EventKind::Received || event.kind == fabric::EventKind::RemoteWrite;
  if (arrived && chance(plan_.delay)) {
    late_.push_back(event);
    return;
  }
  ready_.push_back(event);
  if (event.kind == fabric::EventKind::Completed && dead_polls_left_ > 0) {
    ready_.back().kind = fabric::EventKind::Failed;
    ready_.back().error = kInjectedError;
  }
}

std::size_t FaultyRail::poll(std::span<fabric::Event> events) noexcept {
  if (dead_polls_left_ > 0) {
    --dead_polls_left_;
  }
  release_some();
  std::array<fabric::Event, 32> arrived;
  const std::size_t count = inner_->poll(arrived);
  for (std::size_t i = 0; i < count; ++i) {
    keep_or_pass(arrived[i]);
  }
  while (!late_.empty() && !chance(plan_.delay)) {
    const std::size_t index = chance(plan_.reorder) ? random_() % late_.size() : 0;
    ready_.push_back(late_[index]);
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  std::size_t taken = 0;
  while (taken < events.size() && !ready_.empty()) {
    events[taken++] = ready_.front();
    ready_.pop_front();
  }
  return taken;
}

fabric::PostResult FaultyRail::post_write(const fabric::LocalMemory& source,
                                          const fabric::RemoteMemory& dest,
                                          std::optional<std::uint32_t> immediate,
                                          fabric::PostContext* context) noexcept {
  return accept({.kind = Kind::Write,
                 .local = source,
                 .remote = dest,
                 .immediate = immediate,
                 .context = context});
}

fabric::PostResult FaultyRail::post_read(const fabric::LocalMemory& dest,
                                         const fabric::RemoteMemory& source,
                                         fabric::PostContext* context) noexcept {
  return accept({.kind = Kind::Read, .local = dest, .remote = source, .context = context});
}

fabric::PostResult FaultyRail::post_send(const fabric::LocalMemory& message,
                                         fabric::PeerHandle peer,
                                         fabric::PostContext* context) noexcept {
  return accept(
      {.kind = Kind::Send, .local = message, .remote = {.peer = peer}, .context = context});
}

fabric::PostResult FaultyRail::post_receive(const fabric::LocalMemory& buffer,
                                            fabric::PostContext* context) noexcept {
  return chance(plan_.refuse) ? fabric::PostResult::Full : inner_->post_receive(buffer, context);
}

}  // namespace weft::transport::faulty
