// WordMemory by copies of the GPU's copy engines, in a CUDA context of our own (copier.hpp). Runs
// wherever CUDA runs; each call waits for its copy, 10 to 20 us.
//
// A short copy to the GPU is two rows (copier.hpp), so a word arrives as two halves. That shows
// only if both differ from the old ones; such a word is copied in one piece instead, for which
// beside a kernel 2.4 ms were measured.
//
// Threads: any; a guest on threads of the program.
#pragma once

#include <memory>
#include <mutex>

#include "src/gpu/copier.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/gpu/word_memory.hpp"

namespace weft::gpu {

class CopiedWords final : public WordMemory {
 public:
  // For all memory of `device` that CUDA knows. Throws Error.
  [[nodiscard]] static std::unique_ptr<CopiedWords> create(const Device& device);
  ~CopiedWords() override;

  void read(void* dest, const void* address, std::size_t bytes) noexcept override;
  void write(void* address, const void* source, std::size_t bytes) noexcept override;
  void replace(void* address,
               std::size_t bytes,
               std::uint64_t old,
               std::uint64_t value) noexcept override;

  void show_nic_writes() noexcept override { require_nic_writes(device_); }

 private:
  struct Parts;

  explicit CopiedWords(const Device& device);
  void wait(CopyDirection direction, std::uint64_t number);

  std::mutex mutex_;
  Device device_;
  std::unique_ptr<Parts> parts_;
};

// True if a copy of the word as two halves may show a third value.
[[nodiscard]] constexpr bool changes_both_halves(std::uint64_t old,
                                                 std::uint64_t value,
                                                 std::size_t bytes) {
  const std::uint64_t changed = old ^ value;
  const std::size_t half_bits = bytes * 4;
  const std::uint64_t low = (std::uint64_t{1} << half_bits) - 1;
  return (changed & low) != 0 && (changed >> half_bits) != 0;
}

}  // namespace weft::gpu
