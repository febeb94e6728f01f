#include "moe/src/cpu/refusals.hpp"

#include <cstring>
#include <string>

namespace weft::moe::engine {
namespace {

constexpr ChannelShape kNoRows{};

Inlets from_each_rank(const Ranks& ranks) {
  Inlets inlets(ranks.count());
  for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
    inlets[rank] = {{static_cast<std::size_t>(ranks.me), rank}};
  }
  return inlets;
}

}  // namespace

Refusals::Refusals(const Ranks& ranks, std::byte* memory)
    : ranks_(ranks), channel_(ranks, kNoRows, from_each_rank(ranks), memory) {}

std::size_t Refusals::bytes(std::size_t ranks) {
  return Channel::bytes(ranks, kNoRows);
}

void Refusals::begin(weft_moe_step step) {
  ++exchange_calls_;
  step_ = step;
  for (Used& used : channels_) {
    used.calls = used.channel->call();
  }
}

// A rank may be a call ahead, and have refused that one.
const Message* Refusals::heard(const std::vector<bool>& active) const {
  const Message* found = nullptr;
  channel_.for_early([&](const Message& message, std::size_t sender) {
    if (active[sender] && message.exchange_call == exchange_call()) {
      found = &message;
    }
  });
  return found;
}

void Refusals::tell(Message refusal) {
  refusal.mode = static_cast<std::int32_t>(step_);
  refusal.exchange_call = exchange_call();
  channel_.begin();
  for (std::size_t i = 1; i <= ranks_.count(); ++i) {
    const std::size_t rank = (static_cast<std::size_t>(ranks_.me) + i) % ranks_.count();
    channel_.send(rank, {&rank, 1}, refusal, 0, [](std::size_t /*row*/, std::byte* /*dest*/) {});
  }
}

const Message& Refusals::end_call(const Message& refusal, Attendance& attendance) {
  tell(refusal);
  attendance.receive_ends(channel_, "a refusal");
  const Message* own_words = nullptr;
  const Message* words = nullptr;
  std::vector<bool> steps(1 + static_cast<std::size_t>(WEFT_MOE_COMBINE));
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (attendance.is_active(rank)) {
      const Message& said = channel_.message(rank);
      steps[static_cast<std::size_t>(said.mode)] = true;
      words = words == nullptr ? &said : words;
      own_words = own_words == nullptr && said.refuser == ranks_.pes[rank] ? &said : own_words;
    }
  }
  complete(attendance.active(), steps);
  return own_words == nullptr ? *words : *own_words;
}

// A channel of a step that any rank took has done with its number, also where it was not used. Puts
// that nobody waited for are completed here: what they write is written again two calls later, when
// their sender has been heard of in between.
void Refusals::complete(const std::vector<bool>& active, const std::vector<bool>& steps) {
  for (const Used& used : channels_) {
    if (steps[static_cast<std::size_t>(used.step)]) {
      used.channel->go_on(used.calls + 1);
      used.channel->settle(active);
    }
  }
}

Message refusal_of(const Ranks& ranks, std::string_view text) {
  Message message{.refuser = ranks.pes[static_cast<std::size_t>(ranks.me)]};
  std::strncpy(message.refusal.data(), std::string(text).c_str(), message.refusal.size() - 1);
  return message;
}

}  // namespace weft::moe::engine
