// A thread of an emulated GPU: a stack of its own, which an OS thread runs until it waits for
// others.
//
// Errors: none; a stack that cannot be mapped ends the process.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>

#include <ucontext.h>

namespace weft_emulated {

// A stack and what runs on it. An OS thread that runs fibers is itself one, made by adopt(). Not
// movable: sanitizers know its address.
class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // The calling OS thread's own stack.
  void adopt();

  // Runs `work`, which must not return but leave by switch_to, when it is switched to for the first
  // time.
  void begin(std::function<void()> work);

  // From this fiber, which must be the running one, to another of the same OS thread. `ends`: never
  // to come back.
  void switch_to(Fiber& other, bool ends = false);

  [[nodiscard]] bool has_on_stack(const void* address) const {
    const auto* at = static_cast<const std::byte*>(address);
    return at >= stack_ && at < stack_ + stack_bytes_;
  }

 private:
  static void enter(unsigned int high, unsigned int low);

  std::byte* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
  std::function<void()> work_;
  ucontext_t context_{};
  std::jmp_buf where_{};
  bool has_run_ = false;
  void* sanitizer_ = nullptr;     // ThreadSanitizer's name of it
  void* fake_stack_ = nullptr;    // AddressSanitizer's
  const void* bottom_ = nullptr;  // of its stack
};

}  // namespace weft_emulated
