// The exchanges. Each PE announces what it takes part in, so that a PE that exchanges something
// else is found and not just waited for.
#include "tests/plugins/nvshmem/board.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::plugins::nvshmem {
namespace {

constexpr std::chrono::seconds kOpenLimit{20};
constexpr std::size_t kHeaderBytes = std::size_t{1} << 20U;
static_assert(sizeof(Board) <= kHeaderBytes);

std::size_t mapped_bytes(std::size_t bytes_of_pe) {
  return kHeaderBytes + kPesMax * bytes_of_pe;
}

}  // namespace

Board* Board::create(int pe_count) {
  void* memory = ::mmap(nullptr, mapped_bytes(kPlaceBytes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("mmap of the board failed");
  }
  auto* board = new (memory) Board();
  board->pe_count_ = pe_count;
  return board;
}

Board* Board::open(const std::string& path, int pe, int pe_count) {
  const std::string unfinished = path + ".new";
  const auto give_up_at = std::chrono::steady_clock::now() + kOpenLimit;
  int file = -1;
  if (pe == 0) {
    file = ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  } else {
    while ((file = ::open(path.c_str(), O_RDWR | O_CLOEXEC)) < 0 &&
           std::chrono::steady_clock::now() < give_up_at) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const std::size_t bytes = mapped_bytes(kPlaceBytes);
  if (file < 0 || (pe == 0 && ::ftruncate(file, static_cast<off_t>(bytes)) != 0)) {
    throw std::runtime_error(path + ": " + std::strerror(errno));  // NOLINT
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("mmap of the board failed");
  }
  if (pe != 0) {
    return static_cast<Board*>(memory);
  }
  auto* board = new (memory) Board();
  board->pe_count_ = pe_count;
  std::filesystem::rename(unfinished, path);  // complete, for the others
  return board;
}

void Board::destroy(Board* board) {
  ::munmap(board, mapped_bytes(kPlaceBytes));
}

std::byte* Board::exchanged(int pe) {
  return reinterpret_cast<std::byte*>(this) + kHeaderBytes +
         static_cast<std::size_t>(pe) * kPlaceBytes;
}

int Board::meet() {
  const std::uint32_t round = round_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<std::uint32_t>(pe_count_)) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return 0;
  }
  const bool has_met =
      wait_for(*this, [&] { return round_.load(std::memory_order_acquire) != round; });
  return has_met ? 0 : 7;
}

int Board::announce(int pe, std::int32_t bytes) {
  place(pe).exchange_bytes.store(bytes, std::memory_order_relaxed);
  place(pe).exchange_count.fetch_add(1, std::memory_order_release);
  if (meet() != 0) {
    return 7;
  }
  for (int other = 0; other < pe_count_; ++other) {
    const std::int32_t theirs = place(other).exchange_bytes.load(std::memory_order_relaxed);
    if (theirs != bytes) {
      std::fprintf(stderr, "PE %d exchanges %d bytes where PE %d exchanges %d\n", other, theirs, pe,
                   bytes);
      return 1;
    }
  }
  return 0;
}

int Board::gather(int pe, const void* mine, void* all, int bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes < 0 || size > kPlaceBytes) {
    return 1;
  }
  std::memcpy(exchanged(pe), mine, size);
  if (announce(pe, bytes) != 0) {
    return 7;
  }
  for (int other = 0; other < pe_count_; ++other) {
    std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(other) * size,
                exchanged(other), size);
  }
  return meet();
}

int Board::transpose(int pe, const void* mine, void* all, int bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes < 0 || size * static_cast<std::size_t>(pe_count_) > kPlaceBytes) {
    return 1;
  }
  std::memcpy(exchanged(pe), mine, size * static_cast<std::size_t>(pe_count_));
  if (announce(pe, bytes) != 0) {
    return 7;
  }
  for (int other = 0; other < pe_count_; ++other) {
    std::memcpy(static_cast<std::byte*>(all) + static_cast<std::size_t>(other) * size,
                exchanged(other) + static_cast<std::size_t>(pe) * size, size);
  }
  return meet();
}

int Board::barrier(int pe) {
  return announce(pe, 0) != 0 ? 7 : meet();
}

void Board::take_part_with_zeros(int pe) {
  const int model = pe == 0 ? 1 : 0;
  const auto all_have_left = [&] {
    int left = 0;
    for (int other = 0; other < pe_count_; ++other) {
      left += other != pe && place(other).has_left.load(std::memory_order_acquire) ? 1 : 0;
    }
    return left == pe_count_ - 1;
  };
  std::uint64_t taken = place(model).exchange_count.load(std::memory_order_acquire);
  taken = std::min(taken, place(pe).exchange_count.load(std::memory_order_relaxed));
  while (!all_have_left()) {
    const bool is_next = wait_for(*this, [&] {
      return all_have_left() || place(model).exchange_count.load(std::memory_order_acquire) > taken;
    });
    if (!is_next || place(model).exchange_count.load(std::memory_order_acquire) == taken) {
      return;
    }
    ++taken;
    const std::int32_t bytes = place(model).exchange_bytes.load(std::memory_order_relaxed);
    std::memset(exchanged(pe), 0, kPlaceBytes / 4);
    if (announce(pe, bytes) != 0 || meet() != 0) {
      return;
    }
  }
}

void Board::left_connect(int pe) {
  place(pe).has_left.store(true, std::memory_order_release);
}

void Board::set_step(int pe, const std::string& step) {
  std::snprintf(place(pe).step.data(), place(pe).step.size(), "%s", step.c_str());
}

void Board::set_failures(int pe, const std::string& text) {
  std::snprintf(place(pe).failures.data(), place(pe).failures.size(), "%s", text.c_str());
  has_failed_.store(true, std::memory_order_release);
}

}  // namespace weft::plugins::nvshmem
