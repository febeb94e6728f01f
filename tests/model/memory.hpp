// A memory as C++ defines it, weaker than any CPU's: for each location the list of all values that
// were ever written, in their modification order, and for each thread how far in each list it has
// seen. A load may return any value from there on; acquire takes over what the writer had seen at
// its release. Sequentially consistent accesses and fences share one more such view. This is the
// view-based form of RC11 (Kang and others 2017, Lahav and others 2017).
//
// What it does not have: a load never returns a value whose write depends on nothing and comes
// later in the execution (load buffering). C++ and ARM permit that for relaxed accesses without a
// dependency.
//
// One object an execution. The choices that the model leaves open are the caller's: see `Choose`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/function_ref.hpp"
#include "tests/model/access.hpp"

namespace weft::model {

inline constexpr std::uint32_t kLocationsMax = 48;
inline constexpr std::uint32_t kThreadsMax = 5;

// Returns one of 0 to count - 1.
using Choose = FunctionRef<std::uint32_t(std::uint32_t count)>;

// How far a thread has seen: in each location's list, and in the plain accesses of each thread.
struct View {
  std::array<std::uint8_t, kLocationsMax> seen{};
  std::array<std::uint16_t, kThreadsMax> clock{};

  void join(const View& other);
};

class Memory {
 public:
  void reset(std::uint32_t threads);

  // `newest` allows a load no old value: for a wait that would otherwise never end.
  std::uint64_t load(std::uint32_t thread,
                     const void* address,
                     std::memory_order order,
                     bool newest,
                     Choose choose);
  void store(std::uint32_t thread,
             void* address,
             std::uint64_t value,
             std::memory_order order,
             Choose choose);
  std::uint64_t update(std::uint32_t thread,
                       void* address,
                       std::memory_order order,
                       FunctionRef<Change(std::uint64_t)> change,
                       Choose choose);
  void fence(std::uint32_t thread, std::memory_order order);
  [[nodiscard]] std::uint64_t newest(const void* address);

  // False if another thread's access of the same bytes is not ordered with this one.
  [[nodiscard]] bool plain_read(std::uint32_t thread, const void* address, std::size_t bytes);
  [[nodiscard]] bool plain_write(std::uint32_t thread, const void* address, std::size_t bytes);

  // What the thread has read and done so far, and what it has not seen yet, as a number.
  [[nodiscard]] std::uint64_t history(std::uint32_t thread) const {
    return threads_[thread].history;
  }

  void set_history(std::uint32_t thread, std::uint64_t history) {
    threads_[thread].history = history;
  }

  // True if the thread's last load could have returned a newer value.
  [[nodiscard]] bool was_stale() const { return was_stale_; }

  // Counts the writes of a thread.
  [[nodiscard]] std::uint32_t writes(std::uint32_t thread) const { return threads_[thread].writes; }

  // The same for two executions that can only go on alike.
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  struct Message {
    std::uint64_t value = 0;
    View view;
    bool follows_update = false;  // nothing comes between it and the one before
  };

  struct Location {
    const void* address = nullptr;
    std::vector<Message> messages;
  };

  struct Thread {
    View now;       // what its accesses observe
    View acquired;  // what an acquire fence will add
    View released;  // what a relaxed store publishes: of the last release fence
    std::uint64_t history = 0;
    std::uint32_t writes = 0;
  };

  // The plain accesses of eight aligned bytes.
  struct Plain {
    std::uint64_t word = 0;
    std::uint32_t writer = kThreadsMax;
    std::uint16_t written = 0;
    std::array<std::uint16_t, kThreadsMax> read{};
  };

  [[nodiscard]] std::uint32_t location_of(const void* address);
  [[nodiscard]] Plain& plain_of(std::uint64_t word);
  [[nodiscard]] std::uint32_t oldest(const Thread& thread, std::uint32_t at, bool consistent) const;
  void observe(Thread& thread, std::uint32_t at, std::uint32_t index, std::memory_order order);
  void write(Thread& thread,
             std::uint32_t at,
             std::uint32_t index,
             Message message,
             std::memory_order order);
  void make_room(std::uint32_t at, std::uint32_t index);
  void note(Thread& thread, std::uint64_t what) const;
  [[nodiscard]] std::uint64_t hash_of(const View& view) const;

  std::uint32_t location_count_ = 0;
  std::uint32_t thread_count_ = 0;
  std::array<Location, kLocationsMax> locations_;
  std::array<Thread, kThreadsMax> threads_;
  View consistent_;  // of sequentially consistent accesses and fences
  std::vector<Plain> plain_;
  bool was_stale_ = false;
};

[[nodiscard]] bool acquires(std::memory_order order);
[[nodiscard]] bool releases(std::memory_order order);

}  // namespace weft::model
