// What has arrived for an endpoint: a ring of records of any size, written by any process and read
// by the endpoint's own. A writer reserves room by moving the tail, fills it, and publishes the
// record; the reader takes records in the order of their reservation.
//
// Threads: any number of writers; one reader at a time. A writer that is killed between reserve and
// publish leaves the ring closed, so senders then see a receiver that takes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace loom {

enum class ArrivalKind : std::uint32_t {
  Padding,   // up to the end of the ring
  Message,   // a send; its bytes follow
  Written,   // a write with immediate data has landed
  Greeting,  // asks for an answer: the handshake
  Answer,
};

struct Arrival {
  ArrivalKind kind = ArrivalKind::Padding;
  std::uint32_t source = 0;  // endpoint slot
  std::uint32_t source_generation = 0;
  std::uint32_t has_data = 0;
  std::uint32_t has_receive = 0;  // one of the posted buffers is this arrival's
  std::uint32_t unused = 0;
  std::uint64_t data = 0;   // immediate data
  std::uint64_t bytes = 0;  // of the message, or of the write
};

class Arrivals {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 19U;

  // False if there is no room now.
  bool push(const Arrival& arrival, std::span<const std::byte> payload) {
    const std::uint64_t size = sizeof(Header) + round_up(payload.size());
    std::uint64_t at = 0;
    if (!reserve(size, at)) {
      return false;
    }
    Header& header = header_at(at);
    header.arrival = arrival;
    header.size = size;
    if (!payload.empty()) {
      std::memcpy(&bytes_[at % kBytes + sizeof(Header)], payload.data(), payload.size());
    }
    // SYNC arrival-ready: the record before its number.
    header.ready.store(at + 1, std::memory_order_release);
    return true;
  }

  // Gives the next record to `take`, which returns false to leave it there. False if nothing was
  // taken.
  template <typename Take>
  bool pop(Take&& take) {
    for (;;) {
      const std::uint64_t at = head_.load(std::memory_order_relaxed);  // relaxed: mine alone
      Header& header = header_at(at);
      // SYNC arrival-ready: the record after its number.
      if (header.ready.load(std::memory_order_acquire) != at + 1) {
        return false;
      }
      const bool is_padding = header.arrival.kind == ArrivalKind::Padding;
      const auto* payload = &bytes_[at % kBytes] + sizeof(Header);
      if (!is_padding && !take(header.arrival, payload)) {
        return false;
      }
      const std::uint64_t size = header.size;
      clear(at, size);
      // SYNC arrival-room: what was read before its room is given away.
      head_.store(at + size, std::memory_order_release);
      if (!is_padding) {
        return true;
      }
    }
  }

  // For a new owner; nobody writes meanwhile, as the slot is closed.
  void empty() {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);  // relaxed: as above
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    clear(head, tail - head);
    head_.store(tail, std::memory_order_release);
  }

  [[nodiscard]] bool has_some() {
    const std::uint64_t at =
        head_.load(std::memory_order_relaxed);  // relaxed: a hint; pop() looks again
    return header_at(at).ready.load(std::memory_order_acquire) == at + 1;
  }

 private:
  struct alignas(64) Header {
    std::atomic<std::uint64_t> ready;  // position + 1
    std::uint64_t size;
    Arrival arrival;
  };

  static_assert(sizeof(Header) == 64);

  static std::uint64_t round_up(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  Header& header_at(std::uint64_t at) { return *reinterpret_cast<Header*>(&bytes_[at % kBytes]); }

  bool reserve(std::uint64_t size, std::uint64_t& at) {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    for (;;) {
      const std::uint64_t to_end = kBytes - tail % kBytes;
      const std::uint64_t wanted = to_end < size ? to_end : size;
      // SYNC arrival-room: room that the reader has given back.
      if (tail + wanted > head_.load(std::memory_order_acquire) + kBytes) {
        return false;
      }
      // relaxed: who owns the room publishes it by `ready`
      if (!tail_.compare_exchange_weak(tail, tail + wanted, std::memory_order_relaxed)) {
        continue;
      }
      if (wanted == size) {
        at = tail;
        return true;
      }
      Header& header = header_at(tail);
      header.arrival.kind = ArrivalKind::Padding;
      header.size = wanted;
      // SYNC arrival-ready: padding is a record too.
      header.ready.store(tail + 1, std::memory_order_release);
      tail += wanted;
    }
  }

  // No old payload may look like the number of a later record.
  void clear(std::uint64_t at, std::uint64_t size) {
    for (std::uint64_t line = at; line < at + size; line += 64) {
      header_at(line).ready.store(0,
                                  std::memory_order_relaxed);  // relaxed: before the head's release
    }
  }

  alignas(64) std::atomic<std::uint64_t> tail_;
  alignas(64) std::atomic<std::uint64_t> head_;
  alignas(64) std::array<std::byte, kBytes> bytes_;
};

}  // namespace loom
