// The symmetric memory behind arrays: one block for each weft.empty, shared by the array, its views
// and whatever numpy or torch made of them.
//
// Threads: any that Python runs, also without a GIL: what changes is atomic, and the list of blocks
// has a mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::python {

inline constexpr int kHost = -1;  // a device number: memory of the CPU

struct Block {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  int device = kHost;    // or the number of a CUDA device
  bool is_peer = false;  // another PE's memory, mapped here
  // The call that freed it: "weft.free" or "weft.finalize"; nullptr before.
  std::atomic<const char*> gone{nullptr};
  std::atomic<int> exports{0};  // memory views, numpy arrays and tensors that are alive

  [[nodiscard]] bool is_freed() const noexcept { return gone != nullptr; }
};

// All blocks that are not freed, for finalize.
void remember(const std::shared_ptr<Block>& block);
std::vector<std::shared_ptr<Block>> live_blocks();

// finalize takes the symmetric memory away, but numpy arrays and tensors may still show it. They
// keep its last contents, as ordinary memory at the same addresses: `keep_exported` copies, before,
// and `restore` maps, after.
class KeptViews {
 public:
  void keep_exported();
  // The number of bytes that could not be mapped again, because something else is there by now.
  std::size_t restore();

 private:
  struct Kept {
    std::shared_ptr<Block> block;
    std::vector<std::byte> contents;
  };

  std::vector<Kept> kept_;
};

}  // namespace weft::python
