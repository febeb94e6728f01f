// Region 0 of a PE: memory of the plugin's own that peers access, for what belongs to no chunk of
// the host.
//
// Peers write it while this PE reads it, so each word is accessed atomically.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace weft::plugins::nvshmem {

struct ControlWords {
  static constexpr std::size_t kRounds = 32;  // of 2^32 PEs

  std::uint64_t probe = 0;  // target of writes that test a link; nobody reads it
  // Farewell: by round, how many PEs have told this one that they and all before them are done.
  std::array<std::uint64_t, kRounds> farewells{};
};

// A page of its own, because NICs register whole pages.
class ControlMemory {
 public:
  static constexpr std::size_t kBytes = 4096;

  [[nodiscard]] std::span<std::byte> memory() { return page_->bytes; }

  [[nodiscard]] ControlWords& words() { return page_->words; }

 private:
  union alignas(kBytes) Page {
    Page() : bytes{} { words = {}; }

    std::array<std::byte, kBytes> bytes;
    ControlWords words;
  };

  std::unique_ptr<Page> page_ = std::make_unique<Page>();
};

}  // namespace weft::plugins::nvshmem
