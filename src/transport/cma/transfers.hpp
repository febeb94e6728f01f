// What a sender remembers of operations that go through its chunks in pieces, where the kernel forbids
// cross-memory attach: how far each is, and which chunks are free. Values, no behaviour beyond.
//
// Threads: one at a time; CmaTransport holds its send lock.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "src/transport/cma/mailbox.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

struct Transfer {
  static constexpr std::uint32_t kOpenPiecesMax = 16;  // one transfer does not take all chunks

  Operation operation;
  std::uint64_t sent_bytes = 0;
  std::uint32_t open_pieces = 0;  // sent and not answered
  bool has_failed = false;        // then the rest is not sent
  bool is_used = false;

  [[nodiscard]] bool is_all_sent() const { return has_failed || sent_bytes == operation.bytes; }
};

class TransferTable {
 public:
  // New operations find no room beyond the first; what was sent otherwise and came back always does.
  static constexpr std::uint32_t kNewMax = 64;
  static constexpr std::uint32_t kTransfersMax = kNewMax + kStatusSlots;

  [[nodiscard]] std::optional<std::uint32_t> reserve(std::uint32_t count_max) {
    for (std::uint32_t i = 0; count_ < count_max && i < kTransfersMax; ++i) {
      if (!transfers_[i].is_used) {
        transfers_[i] = {.operation = {}, .is_used = true};
        ++count_;
        return i;
      }
    }
    return std::nullopt;
  }

  void release(std::uint32_t index) {
    transfers_[index].is_used = false;
    --count_;
  }

  [[nodiscard]] Transfer& operator[](std::uint32_t index) { return transfers_[index]; }

  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  std::uint32_t count_ = 0;
  std::array<Transfer, kTransfersMax> transfers_{};
};

class ChunkPool {
 public:
  static_assert(kChunkCount == 64);

  [[nodiscard]] std::optional<std::uint16_t> reserve() {
    if (free_ == 0) {
      return std::nullopt;
    }
    const int bit = std::countr_zero(free_);
    free_ &= free_ - 1;
    return static_cast<std::uint16_t>(bit);
  }

  void release(std::uint16_t chunk) { free_ |= std::uint64_t{1} << chunk; }

 private:
  std::uint64_t free_ = ~std::uint64_t{0};
};

// What a status slot stands for: a whole operation, or a piece of a transfer.
struct Sent {
  Operation operation;  // of a piece: only the peer
  std::optional<std::uint32_t> transfer;
  std::uint16_t chunk = 0;
  std::byte* dest = nullptr;  // where a read piece goes
  std::size_t bytes = 0;
  bool is_open = false;
};

}  // namespace weft::transport::cma
