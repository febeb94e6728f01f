// Bells with words: which words share a place, who is woken by what, and that no wake-up is missed.
#include "src/base/word_bell.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>
#include <vector>

#include "src/base/clock.hpp"
#include "src/collectives/control.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kLongUs = 20'000'000;

constexpr auto kNoNews = [] { return false; };

std::uint32_t rings_at(const WordBell& bell) {
  return rings_of(bell.bell);
}

bool is_raised(WordBell& bell, WordPlace place) {
  // relaxed: only the flag itself.
  return AtomicRef(bell.raised[place.value]).load(std::memory_order_relaxed) != 0;
}

void count_unless(bool condition, std::uint32_t& count) {
  // relaxed: read after the threads have ended.
  AtomicRef(count).fetch_add(condition ? 0 : 1, std::memory_order_relaxed);
}

void wait_until_raised(WordBell& bell, WordPlace place) {
  while (!is_raised(bell, place)) {
    std::this_thread::yield();
  }
}

std::size_t places_of_array(std::uint64_t first, std::uint64_t step) {
  std::set<std::uint32_t> places;
  for (std::uint64_t i = 0; i < kWordPlaces; ++i) {
    places.insert(place_of_user_word(first + i * step).value);
  }
  return places.size();
}

TEST(WordPlace, NoTwoWordsOfAPageShareOne) {
  for (std::uint64_t page = 0; page < 2048; ++page) {
    EXPECT_EQ(places_of_array(page * 4096, 8), kWordPlaces);
  }
}

TEST(WordPlace, NoTwoNeighboursShareOneWhereElementsArePages) {
  EXPECT_EQ(places_of_array(64, 4096), kWordPlaces);
  EXPECT_EQ(places_of_array(64, std::uint64_t{2} << 20U), kWordPlaces);
}

TEST(WordPlace, AHalfWordHasThatOfItsWord) {
  EXPECT_EQ(place_of_user_word(4096), place_of_user_word(4100));
}

TEST(WordPlace, NoUserWordSharesOneWithAWordOfWeft) {
  for (std::uint64_t offset = 0; offset < collectives::kControlBytes; offset += 64) {
    EXPECT_LT(place_of_user_word(offset).value, kWordPlaces);
    for (const std::uint32_t owner : {0U, 1U, 255U}) {
      const std::uint32_t place = place_of_control_word(offset, Pe(owner)).value;
      EXPECT_GE(place, kWordPlaces);
      EXPECT_LT(place, 2 * kWordPlaces);
    }
  }
}

TEST(WordPlace, TheSameWordOfEightMatesHasEightInEveryTeam) {
  using collectives::HeapControl;
  for (std::uint64_t team = 0; team < collectives::kTeamCountMax; ++team) {
    std::set<std::uint32_t> places;
    for (std::uint32_t owner = 0; owner < 8; ++owner) {
      const std::uint64_t offset = offsetof(HeapControl, teams) + collectives::kTeamBytes * team;
      places.insert(place_of_control_word(offset, Pe(owner)).value);
    }
    EXPECT_EQ(places.size(), 8U);
  }
}

TEST(AwaitedWords, AreAnythingWhereTheyAreNoneOrTooMany) {
  AwaitedWords words;
  EXPECT_TRUE(words.is_anything());
  for (std::uint32_t i = 0; i < AwaitedWords::kCountMax; ++i) {
    words.add({i});
    EXPECT_FALSE(words.is_anything());
    EXPECT_EQ(words.places().size(), i + 1);
  }
  words.add({99});
  EXPECT_TRUE(words.is_anything());
  EXPECT_TRUE(words.places().empty());
}

TEST(WordBell, IsSilentWhereItIsZeroed) {
  WordBell bell;
  ring_unfenced(bell, {3});
  ring_for_word(bell, {3});
  EXPECT_EQ(rings_at(bell), 0U);
}

TEST(WordBell, ASleeperWithNewsDoesNotSleep) {
  WordBell bell;
  EXPECT_TRUE(sleep_at(bell, AwaitedWords({3}), kLongUs, [] { return true; }));
}

TEST(WordBell, ASleepEndsByItself) {
  WordBell bell;
  EXPECT_FALSE(sleep_at(bell, AwaitedWords({3}), 1000, kNoNews));
  EXPECT_FALSE(sleep_at(bell, AwaitedWords(), 1000, kNoNews));
}

// Every place for one sleeper, and one place more for who rings.
TEST(WordBell, OneSleepCostsOneRingAndOnlyForItsWord) {
  for (std::uint32_t slept = 0; slept < 2 * kWordPlaces; ++slept) {
    WordBell bell;
    EXPECT_FALSE(sleep_at(bell, AwaitedWords({slept}), 1, kNoNews));
    for (std::uint32_t rung = 0; rung < 2 * kWordPlaces; ++rung) {
      if (rung != slept) {
        ring_unfenced(bell, {rung});
        ring_for_word(bell, {rung});
      }
    }
    EXPECT_EQ(rings_at(bell), 0U);
    ring_unfenced(bell, {slept});
    ring_unfenced(bell, {slept});
    EXPECT_EQ(rings_at(bell), 1U) << "what a killed PE had raised costs as much";
  }
}

TEST(WordBell, WhoWaitsForAnythingIsWokenBySignalsOnly) {
  WordBell bell;
  EXPECT_FALSE(sleep_at(bell, AwaitedWords(), 1, kNoNews));
  ring_for_word(bell, {5});
  EXPECT_EQ(rings_at(bell), 0U);
  ring_unfenced(bell, {5});
  ring_unfenced(bell, {6});
  EXPECT_EQ(rings_at(bell), 1U);
}

// The latest moment at which the sleeper itself would not see the news.
TEST(WordBell, AStoreRightAfterTheLastLookEndsTheSleep) {
  AwaitedWords words({3});
  words.add({77});
  for (const AwaitedWords& awaited : {AwaitedWords({77}), words, AwaitedWords()}) {
    WordBell bell;
    const auto look_too_early = [&] {
      ring_unfenced(bell, {77});
      return false;
    };
    EXPECT_TRUE(sleep_at(bell, awaited, 500'000, look_too_early));
  }
}

TEST(WordBell, ASleeperIsWokenByEachOfItsWords) {
  for (const WordPlace rung : {WordPlace{3}, WordPlace{77}}) {
    WordBell bell;
    bool woken = false;
    {
      const std::jthread sleeper([&] {
        AwaitedWords words({3});
        words.add({77});
        woken = sleep_at(bell, words, kLongUs, kNoNews);
      });
      wait_until_raised(bell, rung);
      ring_for_word(bell, {4});
      ring_for_word(bell, rung);
    }
    EXPECT_TRUE(woken);
    EXPECT_EQ(rings_at(bell), 1U);
  }
}

TEST(WordBell, AllWhoSleepForAWordAreWoken) {
  constexpr std::uint32_t kSleepers = 4;
  WordBell bell;
  std::uint64_t word = 0;
  std::uint32_t missed = 0;
  {
    std::vector<std::jthread> sleepers;
    for (std::uint32_t i = 0; i < kSleepers; ++i) {
      sleepers.emplace_back([&] {
        // SYNC word-bell-test: pairs with the store below.
        const auto done = [&] { return AtomicRef(word).load(std::memory_order_acquire) != 0; };
        while (!done()) {
          count_unless(sleep_at(bell, AwaitedWords({9}), kLongUs, done), missed);
        }
      });
    }
    wait_until_raised(bell, {9});
    // SYNC word-bell-test: pairs with done above.
    AtomicRef(word).store(1, std::memory_order_release);
    full_fence();
    ring_unfenced(bell, {9});
  }
  EXPECT_EQ(missed, 0U);
}

// Sleepers at words of their own, one at all of them, and one at anything. A writer waits until its
// sleeper has seen the last store: no later ring makes up for one that was missed, so its sleeper
// would sleep out.
class Crowd {
 public:
  static constexpr std::uint32_t kWords = 3;

  explicit Crowd(std::uint64_t rounds) : rounds_(rounds) {}

  // One of each: nobody else's ring ends a sleep.
  void run_pair() {
    const std::jthread sleeper([this] { sleep_for(0, AwaitedWords({kPlaces[0]}), &seen_[0]); });
    const std::jthread writer([this] { write(0); });
  }

  void run() {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < kWords; ++i) {
      threads.emplace_back([this, i] { sleep_for(i, AwaitedWords({kPlaces[i]}), &seen_[i]); });
      threads.emplace_back([this, i] { write(i); });
    }
    threads.emplace_back([this] {
      AwaitedWords all;
      for (const WordPlace place : kPlaces) {
        all.add(place);
      }
      sleep_for(0, all, nullptr);
    });
    threads.emplace_back([this] { sleep_for(1, AwaitedWords(), nullptr); });
  }

  std::uint64_t missed() { return read(missed_); }

 private:
  static constexpr std::uint32_t kSleepUs = 5'000'000;
  // The last two share a group, though no place.
  static constexpr std::array<WordPlace, kWords> kPlaces{WordPlace{1}, WordPlace{40},
                                                         WordPlace{40 + 32}};

  static std::uint64_t read(std::uint64_t& word) {
    // SYNC word-bell-test: pairs with store.
    return AtomicRef(word).load(std::memory_order_acquire);
  }

  static void store(std::uint64_t& word, std::uint64_t value) {
    // SYNC word-bell-test: pairs with read.
    AtomicRef(word).store(value, std::memory_order_release);
  }

  void sleep_for(std::uint32_t i, const AwaitedWords& words, std::uint64_t* seen) {
    for (std::uint64_t last = 0; last < rounds_ && missed() == 0;) {
      const auto has_news = [&] { return read(words_[i]) != last; };
      if (!sleep_at(bell_, words, kSleepUs, has_news)) {
        store(missed_, 1);
      }
      last = read(words_[i]);
      if (seen != nullptr) {
        store(*seen, last);
      }
    }
  }

  // Each time a little later, so that stores fall on every step of falling asleep.
  void write(std::uint32_t i) {
    for (std::uint64_t round = 1; round <= rounds_ && missed() == 0; ++round) {
      for (std::uint64_t pause = 0; pause < round % 97; ++pause) {
        cpu_pause();
      }
      store(words_[i], round);
      full_fence();  // what ring_unfenced leaves out
      ring_unfenced(bell_, kPlaces[i]);
      for (std::uint32_t looks = 0; read(seen_[i]) != round && missed() == 0; ++looks) {
        if (looks > 1000) {
          std::this_thread::yield();
        }
      }
    }
  }

  std::uint64_t rounds_;
  WordBell bell_;
  std::array<std::uint64_t, kWords> words_{};
  std::array<std::uint64_t, kWords> seen_{};
  std::uint64_t missed_ = 0;
};

TEST(WordBell, MissesNobodyWhoIsAlone) {
  Crowd pair(20'000);
  pair.run_pair();
  EXPECT_EQ(pair.missed(), 0U);
}

TEST(WordBell, MissesNobodyInACrowd) {
  Crowd crowd(5000);
  crowd.run();
  EXPECT_EQ(crowd.missed(), 0U);
}

}  // namespace
}  // namespace weft
