// Memory of a GPU as the CPU of its PE reads and changes it: single words, and a few bytes of data.
// Either through a mapping (gdrcopy.hpp) or by copies (copied_words.hpp).
//
// Nothing here is atomic with what the GPU's own threads do to a word. Changes by the CPU are
// atomic with each other if all hold `updates()`.
//
// Threads: any. Where a way fails for good, it aborts with the reason: a word that is never written
// would be waited for without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weft::gpu {

class WordMemory {
 public:
  WordMemory() = default;
  WordMemory(const WordMemory&) = delete;
  WordMemory& operator=(const WordMemory&) = delete;
  virtual ~WordMemory() = default;

  // Any bytes at any address of the memory. Each returns when it is done; what was written is then
  // visible to the GPU's threads, not always in one piece before.
  virtual void read(void* dest, const void* address, std::size_t bytes) noexcept = 0;
  virtual void write(void* address, const void* source, std::size_t bytes) noexcept = 0;

  // A word of 2, 4 or 8 bytes, aligned; in the low bytes of the value.
  [[nodiscard]] virtual std::uint64_t load(const void* address, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    read(&value, address, bytes);
    return value;
  }

  // The GPU's threads see `old` or `value` there, and nothing else. `old` is what the word holds:
  // needed only if `needs_old()`. Returns when they see it.
  virtual void replace(void* address,
                       std::size_t bytes,
                       std::uint64_t old,
                       std::uint64_t value) noexcept = 0;

  [[nodiscard]] virtual bool needs_old() const noexcept { return true; }

  // The GPU's threads that see a later write also see what NICs have reported before this call.
  virtual void show_nic_writes() noexcept {}

  // Held from load to replace.
  [[nodiscard]] std::mutex& updates() { return updates_; }

 private:
  std::mutex updates_;
};

}  // namespace weft::gpu
