// A sliding window over 32-bit sequence numbers that arrive in any order. It knows which are done,
// and below which number all are. Used to drop duplicate messages, and to know which operations are
// visible.
//
// Invariant: everything below floor() is done; nothing at or above floor() + kSpan has been seen.
// Sequence numbers wrap; the window is far smaller than half of their range. One thread at a time.
#pragma once

#include <array>
#include <cstdint>

namespace weft::transport::rails {

class SequenceWindow {
 public:
  static constexpr std::uint32_t kSpan = 4096;

  // Marks `sequence` as done. False if it is a duplicate or outside of the window.
  bool mark(std::uint32_t sequence) {
    if (sequence - floor_ >= kSpan || test(sequence)) {
      return false;
    }
    bits_[word_of(sequence)] |= bit_of(sequence);
    while (test(floor_)) {
      bits_[word_of(floor_)] &= ~bit_of(floor_);
      ++floor_;
    }
    return true;
  }

  [[nodiscard]] bool is_done(std::uint32_t sequence) const {
    // A number below the floor has a distance that wraps to the upper half of the range.
    return static_cast<std::int32_t>(sequence - floor_) < 0 ||
           (sequence - floor_ < kSpan && test(sequence));
  }

  // The first sequence number that is not done.
  [[nodiscard]] std::uint32_t floor() const { return floor_; }

  // The full sequence number from its lower 16 bits: the one within 32768 of the floor.
  [[nodiscard]] std::uint32_t widen(std::uint16_t low) const {
    const auto distance = static_cast<std::int16_t>(
        static_cast<std::uint16_t>(low - static_cast<std::uint16_t>(floor_)));
    return floor_ + static_cast<std::uint32_t>(static_cast<std::int32_t>(distance));
  }

 private:
  static constexpr std::uint32_t kWordBits = 64;

  static std::uint32_t word_of(std::uint32_t sequence) { return (sequence % kSpan) / kWordBits; }

  static std::uint64_t bit_of(std::uint32_t sequence) {
    return std::uint64_t{1} << (sequence % kWordBits);
  }

  [[nodiscard]] bool test(std::uint32_t sequence) const {
    return (bits_[word_of(sequence)] & bit_of(sequence)) != 0;
  }

  std::uint32_t floor_ = 0;
  std::array<std::uint64_t, kSpan / kWordBits> bits_{};
};

}  // namespace weft::transport::rails
