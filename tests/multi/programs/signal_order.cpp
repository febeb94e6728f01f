// Every PE sends numbered put_signals to every other, small and large ones in turn, and checks that
// a signal is never seen before all of its data, and that none is lost or seen twice:
//   signal_order MESSAGES      to each peer
// For fabrics that deliver in any order and lose NICs meanwhile.
#include <weft/weft.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSlots = 64;  // messages to one peer that have not been checked
constexpr std::size_t kWordsLarge =
    512;  // of 8 bytes: more than a message carries along with its signal
constexpr std::size_t kWordsSmall = 8;
constexpr std::uint64_t kLargeEvery = 16;
constexpr std::uint64_t kCreditEvery = 16;
constexpr std::chrono::seconds kPatience{60};

std::size_t words_of(std::uint64_t number) {
  return number % kLargeEvery == 0 ? kWordsLarge : kWordsSmall;
}

std::uint64_t content(std::size_t sender, std::uint64_t number, std::size_t index) {
  return (sender << 56U) ^ (number << 16U) ^ index;
}

class Exchange {
 public:
  Exchange(std::size_t me, std::size_t count, std::uint64_t messages)
      : me_(me),
        count_(count),
        messages_(messages),
        data_(count * kSlots * kWordsLarge),
        signals_(count * kSlots),
        credits_(count),
        sent_(count),
        seen_(count) {}

  // False if nothing arrives for too long.
  bool run() {
    auto moved = Clock::now();
    while (!is_done()) {
      bool has_moved = false;
      for (std::size_t peer = 0; peer < count_; ++peer) {
        if (peer != me_) {
          has_moved = send_to(peer) || has_moved;
          has_moved = receive_from(peer) || has_moved;
        }
      }
      if (has_moved) {
        moved = Clock::now();
      } else if (Clock::now() - moved > kPatience) {
        return false;
      }
    }
    weft::quiet();
    return true;
  }

  void report() const {
    for (std::size_t peer = 0; peer < count_; ++peer) {
      if (peer != me_ && (sent_[peer] != messages_ || seen_[peer] != messages_)) {
        std::fprintf(stderr, "PE %zu: of %llu messages %llu went to PE %zu, %llu came from it\n",
                     me_, static_cast<unsigned long long>(messages_),
                     static_cast<unsigned long long>(sent_[peer]), peer,
                     static_cast<unsigned long long>(seen_[peer]));
      }
    }
  }

  [[nodiscard]] std::uint64_t early() const { return early_; }

 private:
  [[nodiscard]] bool is_done() const {
    for (std::size_t peer = 0; peer < count_; ++peer) {
      if (peer != me_ && (sent_[peer] < messages_ || seen_[peer] < messages_)) {
        return false;
      }
    }
    return true;
  }

  static std::size_t place(std::size_t sender, std::uint64_t number) {
    return sender * kSlots + number % kSlots;
  }

  bool send_to(std::size_t peer) {
    const std::uint64_t number = sent_[peer];
    const bool has_room =
        number < kSlots || weft::test(&credits_[peer], WEFT_GE, number + 1 - kSlots);
    if (number == messages_ || !has_room) {
      return false;
    }
    std::uint64_t message[kWordsLarge];
    const std::size_t words = words_of(number);
    for (std::size_t i = 0; i < words; ++i) {
      message[i] = content(me_, number, i);
    }
    const std::size_t slot = place(me_, number);
    weft::put_signal(std::span<const std::uint64_t>(message, words), &data_[slot * kWordsLarge],
                     {&signals_[slot], number + 1, WEFT_SIGNAL_SET}, static_cast<int>(peer));
    ++sent_[peer];
    return true;
  }

  bool receive_from(std::size_t peer) {
    const std::uint64_t number = seen_[peer];
    const std::size_t slot = place(peer, number);
    if (number == messages_ || !weft::test(&signals_[slot], WEFT_EQ, number + 1)) {
      return false;
    }
    bool is_whole = true;
    for (std::size_t i = 0; i < words_of(number); ++i) {
      is_whole = is_whole && data_[slot * kWordsLarge + i] == content(peer, number, i);
    }
    early_ += is_whole ? 0 : 1;
    ++seen_[peer];
    if (seen_[peer] % kCreditEvery == 0) {
      weft::atomic_add(&credits_[me_], kCreditEvery, static_cast<int>(peer));
    }
    return true;
  }

  std::size_t me_;
  std::size_t count_;
  std::uint64_t messages_;
  weft::SymmetricArray<std::uint64_t> data_;     // by sender and slot
  weft::SymmetricArray<std::uint64_t> signals_;  // the same: the number of the message, plus one
  weft::SymmetricArray<std::uint64_t> credits_;  // by receiver: how many it has checked
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t early_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const weft::Session session;
  const auto me = static_cast<std::size_t>(session.pe());
  Exchange exchange(me, static_cast<std::size_t>(session.pe_count()), messages);
  weft::barrier_all();
  const bool is_complete = exchange.run();
  exchange.report();
  if (!is_complete) {
    weft_global_exit(1);
  }
  weft::barrier_all();
  std::printf("PE %zu: %llu messages from each peer, %llu early\n", me,
              static_cast<unsigned long long>(messages),
              static_cast<unsigned long long>(exchange.early()));
  return exchange.early() == 0 ? 0 : 1;
}
