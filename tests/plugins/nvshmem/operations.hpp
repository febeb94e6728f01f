// What a caller of the host library does, as the calls that it becomes: splits at the ends of
// chunks, finds handles, and follows its rules. One object for each queue.
//
// Threads: the proxy's by the proxy thread, the program's by the main thread. Each call throws
// std::runtime_error where the host library would end the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>

#include "tests/plugins/nvshmem/board.hpp"
#include "tests/plugins/nvshmem/fake_heap.hpp"
#include "tests/plugins/nvshmem/loaded_transport.hpp"

namespace weft::plugins::nvshmem {

enum class Blocking { No, Yes };

struct Amo {
  AmoCall call;
  std::uint64_t offset;  // of the word
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

// The 16 bytes at `result` of an operation that fetches.
struct AmoResult {
  std::uint64_t value;
  std::uint64_t flag;
};

struct Signal {
  std::uint64_t offset;
  std::uint64_t value;
  int code = kAmoSignalSet;
};

struct Span {  // the bytes of an operation, and where they go or come from
  std::uint64_t offset;
  const void* local;
  std::size_t bytes;
};

class Operations {
 public:
  struct Setting {
    Board& board;
    const LoadedTransport& transport;
    FakeHeap& heap;
    int pe;
    int interface;
    int queue;
  };

  explicit Operations(const Setting& setting) : setting_(setting) {}

  void put(int pe, const Span& span, Blocking blocking = Blocking::No) {
    rma(pe, kRmaPut, span, blocking);
  }

  void get(int pe, const Span& span, Blocking blocking = Blocking::No) {
    rma(pe, kRmaGet, span, blocking);
  }

  template <typename Value>
  void p(int pe, std::uint64_t offset, Value value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    put_value(pe, offset, &value, sizeof(value));
    value = Value{};  // its memory is the caller's again
  }

  void amo(int pe, const Amo& amo) { update(pe, amo, nullptr, 0); }

  // The element of the heap at `result` is used for it. Waits as a kernel does.
  AmoResult fetch(int pe, const Amo& amo, std::uint64_t result);
  // Without put_signal (interface 3) as kernels do it there.
  void put_signal(int pe, const Span& span, const Signal& signal);
  void fence(int pe);
  void quiet(int pe);
  void quiet_all();

  // Makes progress meanwhile if it is the proxy's. Throws after `limit_s`.
  template <typename Condition>
  void wait_until(Condition&& condition, const std::string& what, double limit_s = 20) {
    if (setting_.queue == kProxyQueue) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
      while (!condition() && !setting_.board.has_failed() &&
             std::chrono::steady_clock::now() < end) {
        progress();
        std::this_thread::yield();
      }
    }
    check(wait_for(setting_.board, condition, limit_s) ? 0 : -1, "waiting for " + what);
  }

  void progress();

  static constexpr std::uint64_t kFlagBefore = 0xF1A6;  // of a result, until it is there

 private:
  void rma(int pe, int code, const Span& span, Blocking blocking);
  void put_value(int pe, std::uint64_t offset, void* value, std::size_t bytes);
  void update(int pe, const Amo& amo, void* result, std::uint64_t return_flag);
  void check(int status, const std::string& what) const;

  // As much of a span as lies in one range on both sides.
  [[nodiscard]] std::size_t first_bytes(const Span& span) const;
  [[nodiscard]] AmoDescription describe(int pe, const Amo& amo) const;

  Setting setting_;
  std::uint64_t generation_ = 0;
};

}  // namespace weft::plugins::nvshmem
