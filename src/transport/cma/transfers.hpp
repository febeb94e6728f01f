// The sender's state of operations that go through its chunks in pieces, if the kernel forbids
// cross-memory attach: the progress of each, and the free chunks. Plain values.
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
  static constexpr std::uint32_t kOpenPiecesMax = 16;  // a transfer must not take all chunks

  Operation operation;
  std::uint64_t sent_bytes = 0;
  std::uint32_t open_pieces = 0;  // sent and not answered
  bool has_failed = false;        // then the remaining pieces are not sent
  bool is_used = false;

  [[nodiscard]] bool is_all_sent() const { return has_failed || sent_bytes == operation.bytes; }
};

class TransferTable {
 public:
  // The limit for new operations. A direct operation that came back Forbidden always finds room
  // beyond it.
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

// The owner of a status slot: a whole operation, or a piece of a transfer.
struct Sent {
  Operation operation;  // for a piece: only the peer is set
  std::optional<std::uint32_t> transfer;
  std::uint16_t chunk = 0;
  std::byte* dest = nullptr;  // where a read piece is copied to
  std::size_t bytes = 0;
  bool is_open = false;
};

}  // namespace weft::transport::cma
