// A bell whose sleepers say which words they wait for, so that only stores to these wake them: a table of
// flags, and each word has its place in it. A sleeper raises the flags of its words, and whoever stored a word
// looks at the word's flag: one load, unless it is raised. Who finds it raised lowers it and wakes the word's
// sleepers, who look, and raise it again if they sleep on. So a storm of stores costs one system call for
// each sleep, and so does what a killed PE had raised. Words may share a place: a wake-up too many.
// Zeroed memory is a silent bell.
//
// A ring may be missed: the ringer's store may become visible after the sleeper's last look, and the sleeper's
// flag after the ringer's look. Sleepers bound their sleep. After a full fence, and so after an atomic
// on x86, it is not missed.
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

// Of each kind, so that no store to a user's word wakes who waits for one of Weft's own.
inline constexpr std::uint32_t kWordPlaces = 512;

// A word's place in the table, which all PEs compute alike.
struct WordPlace {
  std::uint32_t value = 0;

  friend bool operator==(WordPlace, WordPlace) = default;
};

// Of the word at `offset` in user memory or another region. No two words of 4 KiB (aligned) share a
// place, nor do neighbours in an array whose elements are 4 KiB or 2 MiB long.
[[nodiscard]] constexpr WordPlace place_of_user_word(std::uint64_t offset) {
  const std::uint64_t word = offset / 8;
  const std::uint64_t pages = word / kWordPlaces;
  return {static_cast<std::uint32_t>((word ^ pages ^ pages / kWordPlaces) % kWordPlaces)};
}

// Of Weft's own word at `offset` in the heap of PE `owner`: a PE shows its words, which lie at the same
// offset for all, to those who wait for one of them. Multipliers: Knuth, volume 3, 6.4; Steele and others 2014.
[[nodiscard]] constexpr WordPlace place_of_control_word(std::uint64_t offset, Pe owner) {
  const std::uint64_t key =
      offset / kCacheLineBytes * 0x9E3779B97F4A7C15U + owner.value * 0xD1B54A32D192ED03U;
  return {kWordPlaces + static_cast<std::uint32_t>((key >> 32U) % kWordPlaces)};
}

// What a sleeper waits for: a few words, or anything.
class AwaitedWords {
 public:
  static constexpr std::uint32_t kCountMax = 16;

  // Anything.
  AwaitedWords() = default;

  explicit AwaitedWords(WordPlace place) { add(place); }

  // More than kCountMax words are anything.
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
  Bell bell;  // `sleepers`: some wait for anything
  std::array<std::uint8_t, std::size_t{2} * kWordPlaces> raised{};  // by place
};

// Wakes those who wait for the word at `place`, or for anything, if somebody has said so.
void wake_sleepers(WordBell& bell, WordPlace place) noexcept;

// After the word at `place` was stored.
inline void ring_unfenced(WordBell& bell, WordPlace place) noexcept {
  // relaxed: who finds a flag raised takes it with acquire; one that is not seen is a miss, see above.
  const std::uint32_t here = AtomicRef(bell.raised[place.value]).load(std::memory_order_relaxed);
  const std::uint32_t anywhere = AtomicRef(bell.bell.sleepers).load(std::memory_order_relaxed);
  if ((here | anywhere) != 0) [[unlikely]] {
    wake_sleepers(bell, place);
  }
}

// The same, not for those who wait for anything: for stores of which most are no news to anybody.
inline void ring_for_word(WordBell& bell, WordPlace place) noexcept {
  // relaxed: as above.
  if (AtomicRef(bell.raised[place.value]).load(std::memory_order_relaxed) != 0) [[unlikely]] {
    wake_sleepers(bell, place);
  }
}

// Sleeps until somebody rings for one of `words`, at most `timeout_us`, and not at all if has_news() holds.
// True if not the time ended it.
bool sleep_at(WordBell& bell,
              const AwaitedWords& words,
              std::uint32_t timeout_us,
              FunctionRef<bool()> has_news) noexcept;

}  // namespace weft
