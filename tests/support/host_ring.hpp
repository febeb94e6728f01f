// A ring in host memory, for tests whose "GPU" is a thread.
//
// Owns what RingView points to; zeroed.
#pragma once

#include <weft/device/ring.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace weft::test {

class HostRing {
 public:
  explicit HostRing(std::uint64_t capacity)
      : slots_(capacity), payload_(capacity * device::kPayloadBytes), replies_(capacity) {
    view_.slots = slots_.data();
    view_.payload = payload_.data();
    view_.replies = replies_.data();
    view_.head = &words_[0].value;
    view_.consumed_seen = &words_[1].value;
    view_.consumed = &words_[2].value;
    view_.completed = &words_[3].value;
    view_.lock = &words_[4].value;
    view_.next = &words_[5].value;
    view_.completed_seen = &words_[6].value;
    view_.looking = &words_[7].value;
    view_.capacity = capacity;
  }

  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  [[nodiscard]] const device::RingView& view() const { return view_; }

 private:
  struct alignas(64) Word {
    std::uint64_t value = 0;
  };

  std::vector<device::CommandSlot> slots_;
  std::vector<std::byte> payload_;
  std::vector<device::Reply> replies_;
  std::array<Word, 8> words_;
  device::RingView view_;
};

}  // namespace weft::test
