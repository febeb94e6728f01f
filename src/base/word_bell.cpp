#include "src/base/word_bell.hpp"

namespace weft {
namespace {

// Flags are in memory that processes share.
static_assert(AtomicRef<std::uint8_t>::is_always_lock_free);

// The kernel distinguishes 32 groups of sleepers.
std::uint32_t group_of(WordPlace place) {
  return std::uint32_t{1} << place.value % 32;
}

template <typename Flag>
bool lower(Flag& flag) {
  // SYNC word-bell: pairs with raise, so that a woken sleeper has read `rings` before it changes.
  return AtomicRef(flag).exchange(0, std::memory_order_acquire) != 0;
}

template <typename Flag>
void raise(Flag& flag) {
  // SYNC word-bell: pairs with lower.
  AtomicRef(flag).store(1, std::memory_order_release);
}

// The groups to sleep in.
std::uint32_t announce(WordBell& bell, const AwaitedWords& words) {
  if (words.is_anything()) {
    raise(bell.bell.sleepers);
    return kEveryGroup;
  }
  std::uint32_t groups = 0;
  for (const WordPlace place : words.places()) {
    raise(bell.raised[place.value]);
    groups |= group_of(place);
  }
  return groups;
}

}  // namespace

void wake_sleepers(WordBell& bell, WordPlace place) noexcept {
  const bool has_named_it = lower(bell.raised[place.value]);
  const bool takes_anything = lower(bell.bell.sleepers);
  if (has_named_it || takes_anything) {
    wake_sleepers(bell.bell, group_of(place));
  }
}

bool sleep_at(WordBell& bell,
              const AwaitedWords& words,
              std::uint32_t timeout_us,
              FunctionRef<bool()> has_news) noexcept {
  const std::uint32_t rings = rings_of(bell.bell);
  const std::uint32_t groups = announce(bell, words);
  full_fence();  // between becoming a sleeper and the check for events; ringers have the other half
  return has_news() || sleep_since(bell.bell, rings, groups, timeout_us);
}

}  // namespace weft
