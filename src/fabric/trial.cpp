#include "src/fabric/trial.hpp"

#include <algorithm>
#include <optional>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/log.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kPatienceNs = 1'000'000'000;
constexpr std::size_t kWordBytes = 8;

enum class Outcome : std::uint8_t {
  Worked,
  Refused,      // the provider returned an error
  LostItsData,  // complete, but its immediate data did not arrive
  Unknown,      // no room, or no answer in time: the claim is neither confirmed nor refuted
};

class Trial {
 public:
  Trial(Rail& rail, TrialMemory& memory)
      : rail_(rail), memory_(memory), region_(rail.add_region(memory.dest)) {
    rail.keep_registered(memory.source);
    self_ = rail.add_peer(rail.address());
  }

  Outcome write(std::size_t bytes,
                std::optional<std::uint32_t> immediate,
                PostContext& context) noexcept {
    has_ended_ = has_failed_ = has_arrived_ = false;
    const std::uint64_t deadline_ns = now_ns() + kPatienceNs;
    const LocalMemory here{memory_.source.data(), bytes};
    const RemoteMemory there{self_, region_.base, region_.key};
    PostResult result = PostResult::Full;
    while ((result = rail_.post_write(here, there, immediate, &context)) == PostResult::Full) {
      if (now_ns() > deadline_ns) {
        return Outcome::Unknown;
      }
      look(context);
    }
    if (result != PostResult::Posted) {
      return result == PostResult::Refused ? Outcome::Refused : Outcome::Unknown;
    }
    while (!is_over(immediate.has_value()) && now_ns() < deadline_ns) {
      look(context);
    }
    if (!has_ended_ || has_failed_) {
      return Outcome::Unknown;
    }
    return is_over(immediate.has_value()) ? Outcome::Worked : Outcome::LostItsData;
  }

 private:
  [[nodiscard]] bool is_over(bool with_immediate) const {
    return has_failed_ || (has_ended_ && (has_arrived_ || !with_immediate));
  }

  void look(const PostContext& context) noexcept {
    std::array<Event, 8> events;
    const std::size_t count = rail_.poll(events);
    for (const Event& event : std::span(events).first(count)) {
      if (event.kind == EventKind::RemoteWrite) {
        has_arrived_ = has_arrived_ || event.immediate == kTrialImmediate;
        memory_.used_receive = event.context;
      } else if (event.context == &context) {
        has_ended_ = true;
        has_failed_ = event.kind == EventKind::Failed;
      }
    }
    if (count == 0) {
      cpu_pause();
    }
  }

  Rail& rail_;
  TrialMemory& memory_;
  RegionKey region_;
  PeerHandle self_;
  bool has_ended_ = false;
  bool has_failed_ = false;
  bool has_arrived_ = false;
};

}  // namespace

void try_claims(Rail& rail, TrialMemory& memory) {
  if (!rail.limits().is_claim) {
    return;
  }
  RailLimits limits = rail.limits();
  limits.is_claim = false;
  Trial trial(rail, memory);
  if (limits.inject_write_bytes > 0) {
    const std::size_t bytes = std::min(limits.inject_write_bytes, kTrialBytes);
    if (trial.write(bytes, std::nullopt, memory.contexts[0]) == Outcome::Refused) {
      log::info("{} injects no writes: {}", rail.nic(), error_words(rail.last_error()));
      limits.inject_write_bytes = 0;
      rail.restrict_to(limits);
    }
  }
  if (limits.has_immediate) {
    const Outcome outcome = trial.write(kWordBytes, kTrialImmediate, memory.contexts[1]);
    limits.has_immediate = outcome != Outcome::Refused && outcome != Outcome::LostItsData;
    if (!limits.has_immediate) {
      log::info("{} carries no immediate data ({}): signals wait for the data before them",
                rail.nic(),
                outcome == Outcome::Refused ? error_words(rail.last_error()) : "it got lost");
    }
  }
  rail.restrict_to(limits);
}

}  // namespace weft::fabric
