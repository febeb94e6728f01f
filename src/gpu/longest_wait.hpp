// Finds a wait that lasts too long, so that it is reported once. Pure: the caller gives the time,
// and a number of what it waits for, which only grows.
//
// Threads: one at a time.
#pragma once

#include <cstdint>

namespace weft::gpu {

class LongestWait {
 public:
  static constexpr std::uint64_t kNsMax = 2'000'000'000;

  // `number` is what is waited for now; numbers grow. True once for each number, after kNsMax.
  bool is_too_long(std::uint64_t number, std::uint64_t now_ns) {
    if (number != number_ || begin_ns_ == 0) {
      number_ = number;
      begin_ns_ = now_ns;
      was_said_ = false;
    }
    const bool is_news = !was_said_ && now_ns - begin_ns_ > kNsMax;
    was_said_ = was_said_ || is_news;
    return is_news;
  }

 private:
  std::uint64_t number_ = 0;
  std::uint64_t begin_ns_ = 0;
  bool was_said_ = false;
};

}  // namespace weft::gpu
