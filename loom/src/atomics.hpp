// Atomics of a NIC: which operations it has on which types, and how one is carried out. As on
// Slingshot's NIC they take one element and are atomic with each other; a CPU that writes to the
// same word meanwhile is not part of that.
//
// Threads: any, of any process; a lock in the segment for each group of words.
#pragma once

#include <rdma/fi_atomic.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "loom/src/segment.hpp"

namespace loom {

enum class AtomicForm : std::uint8_t { Base, Fetch, Compare };

// What a client posts: one element each.
struct AtomicRequest {
  AtomicForm form = AtomicForm::Base;
  fi_op op = FI_SUM;
  fi_datatype type = FI_UINT64;
  const void* operand = nullptr;
  const void* compare = nullptr;  // of Compare
  void* result = nullptr;         // of Fetch and Compare
};

// A copy that its operation carries.
struct Atomic {
  fi_op op = FI_SUM;
  fi_datatype type = FI_UINT64;
  std::array<std::byte, 8> operand{};
  std::array<std::byte, 8> compare{};
  void* result = nullptr;

  [[nodiscard]] bool reads_only() const { return op == FI_ATOMIC_READ; }
};

// 0, or -FI_EOPNOTSUPP, -FI_EINVAL (libfabric 2.6: prov/cxi/src/cxip_atomic.c, without complex
// types).
[[nodiscard]] int check_atomic(AtomicForm form, fi_op op, fi_datatype type);

// Of a type that check_atomic() takes.
[[nodiscard]] std::size_t atomic_bytes(fi_datatype type);

[[nodiscard]] Atomic copy_of(const AtomicRequest& request);

// Writes the new value of a word to it, in this process; its old value is the result.
void update_word(const Atomic& atomic, const std::byte* before, std::byte* after);

// Held around reading and writing a word. The lock of a process that has died is taken over.
class WordLock {
 public:
  WordLock(Segment& segment, std::uint64_t address);
  WordLock(const WordLock&) = delete;
  WordLock& operator=(const WordLock&) = delete;
  ~WordLock();

 private:
  std::atomic<std::uint32_t>& owner_;
};

}  // namespace loom
