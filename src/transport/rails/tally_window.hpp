// The tallies of the put_signals of one peer whose pieces are arriving. They lie in blocks, which
// exist while a sequence number of theirs is not done: the memory follows what is in flight, and a
// peer that sends only messages has none.
//
// Invariant: no block lies below floor(), the first sequence number that is not done. Guarded by
// the transport's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/error.hpp"
#include "src/transport/rails/compact_queue.hpp"
#include "src/transport/rails/piece_tally.hpp"
#include "src/transport/rails/pool.hpp"
#include "src/transport/rails/sequence_window.hpp"

namespace weft::transport::rails {

struct SequenceTally {
  PieceTally pieces;
  std::uint32_t eager = 0;  // of the pieces that have arrived, those that came in messages
};

// Of so many consecutive sequence numbers; the first is a multiple of their number.
struct TallyBlock {
  static constexpr std::uint32_t kCount = 64;

  std::array<SequenceTally, kCount> tallies;
};

class TallyWindow {
 public:
  explicit TallyWindow(Pool<TallyBlock>& pool) : pool_(pool) {}

  // Null: nothing was counted for it. `sequence` is in the window of kSpan from the floor on.
  [[nodiscard]] SequenceTally* find(std::uint32_t sequence) {
    const std::size_t index = block_of(sequence);
    TallyBlock* block = index < blocks_.size() ? blocks_[index] : nullptr;
    return block == nullptr ? nullptr : &block->tallies[sequence % TallyBlock::kCount];
  }

  // Makes it if there is none.
  [[nodiscard]] SequenceTally& at(std::uint32_t sequence) {
    const std::size_t index = block_of(sequence);
    while (blocks_.size() <= index) {
      blocks_.push_back(nullptr);
    }
    if (blocks_[index] == nullptr) {
      blocks_[index] = pool_.take();
      *blocks_[index] = {};
    }
    return blocks_[index]->tallies[sequence % TallyBlock::kCount];
  }

  // Everything below `floor` is done.
  void advance(std::uint32_t floor) {
    while (!blocks_.empty() && floor - first_ >= TallyBlock::kCount) {
      if (blocks_.front() != nullptr) {
        pool_.give(blocks_.front());
      }
      blocks_.pop_front();
      first_ += TallyBlock::kCount;
    }
    if (blocks_.empty()) {
      first_ = floor - floor % TallyBlock::kCount;
    }
  }

 private:
  [[nodiscard]] std::size_t block_of(std::uint32_t sequence) const {
    const std::uint32_t index = (sequence - first_) / TallyBlock::kCount;
    WEFT_CHECK(index <= SequenceWindow::kSpan / TallyBlock::kCount,
               "sequence {} is outside of the window at {}", sequence, first_);
    return index;
  }

  Pool<TallyBlock>& pool_;
  CompactQueue<TallyBlock*> blocks_;
  std::uint32_t first_ = 0;  // the first sequence number of the first block
};

}  // namespace weft::transport::rails
