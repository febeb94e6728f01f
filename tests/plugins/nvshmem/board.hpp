// What the PEs of a test share: a barrier that ends, an exchange of bytes, and where each PE is. It
// lies in one anonymous shared mapping that is made before the first fork, or in a file.
//
// Threads: meet, exchange and take_part belong to the main thread of a PE; the rest to any.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

namespace weft::plugins::nvshmem {

inline constexpr int kPesMax = 8;

// One PE's part of the board.
struct BoardPlace {
  std::atomic<std::uint64_t> exchange_count;  // that it has announced
  std::atomic<std::int32_t> exchange_bytes;   // of the last one, for each PE; 0: a barrier
  std::atomic<bool> has_left;                 // left_connect()
  std::array<char, 96> step;                  // what it does, for the report on a PE that hangs
  std::array<char, 4000> failures;
};

class Board {
 public:
  // Maps it; the parent's, which unmaps it. Throws std::runtime_error.
  static Board* create(int pe_count);
  // For PEs that something else has started: in a file, which PE 0 makes. Throws
  // std::runtime_error.
  static Board* open(const std::string& path, int pe, int pe_count);
  static void destroy(Board* board);

  // 0; or not 0 if the others do not come, or one of them has failed.
  [[nodiscard]] int meet();
  // As a bootstrap's allgather and alltoall: `bytes` of each PE, or of each pair.
  [[nodiscard]] int gather(int pe, const void* mine, void* all, int bytes);
  [[nodiscard]] int transpose(int pe, const void* mine, void* all, int bytes);
  [[nodiscard]] int barrier(int pe);
  // A PE without the plugin: takes part with zeros in whatever the others exchange, until all of
  // them have left_connect().
  void take_part_with_zeros(int pe);
  void left_connect(int pe);

  [[nodiscard]] BoardPlace& place(int pe) { return places_[static_cast<std::size_t>(pe)]; }

  [[nodiscard]] int pe_count() const { return pe_count_; }

  void set_step(int pe, const std::string& step);
  void set_failures(int pe, const std::string& text);

  [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

  // Whatever a test needs beside memory of the PEs; zero at first.
  std::array<std::atomic<std::uint64_t>, 64> words;

 private:
  static constexpr std::size_t kPlaceBytes = std::size_t{4} << 20U;  // of each PE in an exchange

  [[nodiscard]] std::byte* exchanged(int pe);
  [[nodiscard]] int announce(int pe, std::int32_t bytes);

  int pe_count_ = 0;
  std::atomic<std::uint32_t> arrived_;
  std::atomic<std::uint32_t> round_;
  std::atomic<bool> has_failed_;
  std::array<BoardPlace, kPesMax> places_;
};

// Polls `condition` until it holds; false after `limit_s` or when another PE has failed.
template <typename Condition>
bool wait_for(const Board& board, Condition&& condition, double limit_s = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (!condition()) {
    if (board.has_failed() || std::chrono::steady_clock::now() > end) {
      return condition();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace weft::plugins::nvshmem
