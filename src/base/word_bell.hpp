// A bell whose sleepers name the words that they wait for, so that only stores to these words wake
// them. It is a table of flags; each word hashes to one place. A sleeper raises the flags of its
// words. A thread that has stored a word checks the word's flag: one load, unless it is raised. If
// it is, the thread lowers it and wakes the word's sleepers, which check and raise the flag again
// if they continue to sleep. So any number of stores costs one system call per sleep; so does a
// flag that a killed PE left raised. Words may share a place, which causes spurious wake-ups.
// Zeroed memory is a bell without sleepers.
//
// A ring may be missed: the ringer's store may become visible after the sleeper's last check, and
// the sleeper's flag after the ringer's check. So sleepers bound their sleep. After a full fence,
// and so after an atomic on x86, no ring is missed.
//
// Threads: any, of any process that maps the bell.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "src/base/atomic.hpp"
#include "src/base/bell.hpp"
#include "src/base/ids.hpp"

namespace weft {

// For user words and for Weft's own words each, so that a store to a user's word wakes no waiter of
// one of Weft's own.
inline constexpr std::uint32_t kWordPlaces = 512;

// A word's place in the table, which all PEs compute identically.
struct WordPlace {
  std::uint32_t value = 0;

  friend bool operator==(WordPlace, WordPlace) = default;
};

// The place of the word at `offset` in user memory or another region. No two words of an aligned 4
// KiB share a place, nor do neighbors in an array whose elements are 4 KiB or 2 MiB long.
[[nodiscard]] constexpr WordPlace place_of_user_word(std::uint64_t offset) {
  const std::uint64_t word = offset / 8;
  const std::uint64_t pages = word / kWordPlaces;
  return {static_cast<std::uint32_t>((word ^ pages ^ pages / kWordPlaces) % kWordPlaces)};
}

// The place of Weft's own word at `offset` in the heap of PE `owner`. A PE publishes its words, at
// the same offset on all PEs, to those that wait for one of them. Multipliers: Knuth, volume 3,
// 6.4; Steele and others 2014.
[[nodiscard]] constexpr WordPlace place_of_control_word(std::uint64_t offset, Pe owner) {
  const std::uint64_t key =
      offset / kCacheLineBytes * 0x9E3779B97F4A7C15U + owner.value * 0xD1B54A32D192ED03U;
  return {kWordPlaces + static_cast<std::uint32_t>((key >> 32U) % kWordPlaces)};
}

// What a sleeper waits for: a few words, or any event.
class AwaitedWords {
 public:
  static constexpr std::uint32_t kCountMax = 16;

  // Any event.
  AwaitedWords() = default;

  explicit AwaitedWords(WordPlace place) { add(place); }

  // With more than kCountMax words it waits for any event.
  void add(WordPlace place) {
    if (count_ < kCountMax) {
      places_[count_] = place;
    }
    count_ = std::min(count_ + 1, kCountMax + 1);
  }

  [[nodiscard]] bool is_anything() const { return count_ == 0 || count_ > kCountMax; }

  [[nodiscard]] std::span<const WordPlace> places() const {
    return std::span(places_).first(is_anything() ? 0 : count_);
  }

  friend bool operator==(const AwaitedWords&, const AwaitedWords&) = default;

 private:
  std::array<WordPlace, kCountMax> places_{};
  std::uint32_t count_ = 0;
};

struct WordBell {
  Bell bell;  // `sleepers`: those that wait for any event
  std::array<std::uint8_t, std::size_t{2} * kWordPlaces> raised{};  // by place
};

// Wakes the sleepers that wait for the word at `place`, or for any event, if there are any.
void wake_sleepers(WordBell& bell, WordPlace place) noexcept;

// Call after storing the word at `place`.
inline void ring_unfenced(WordBell& bell, WordPlace place) noexcept {
  // relaxed: a thread that finds a flag raised takes it with acquire; an unseen flag is a missed
  // ring, see above.
  const std::uint32_t here = AtomicRef(bell.raised[place.value]).load(std::memory_order_relaxed);
  const std::uint32_t anywhere = AtomicRef(bell.bell.sleepers).load(std::memory_order_relaxed);
  if ((here | anywhere) != 0) [[unlikely]] {
    wake_sleepers(bell, place);
  }
}

// The same, without waking sleepers that wait for any event: for stores that rarely matter to
// anyone.
inline void ring_for_word(WordBell& bell, WordPlace place) noexcept {
  // relaxed: as above.
  if (AtomicRef(bell.raised[place.value]).load(std::memory_order_relaxed) != 0) [[unlikely]] {
    wake_sleepers(bell, place);
  }
}

// Sleeps until a ring for one of `words`, at most `timeout_us`; returns at once if has_news()
// holds. False if the timeout ended the sleep.
bool sleep_at(WordBell& bell,
              const AwaitedWords& words,
              std::uint32_t timeout_us,
              FunctionRef<bool()> has_news) noexcept;

}  // namespace weft
