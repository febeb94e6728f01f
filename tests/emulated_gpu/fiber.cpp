#include "tests/emulated_gpu/fiber.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(EMULATED_GPU_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace weft_emulated {
namespace {

constexpr std::size_t kStackBytes = std::size_t{128} << 10U;

// Who was left, so that AddressSanitizer can be told on arrival.
thread_local Fiber* left = nullptr;

}  // namespace

Fiber::~Fiber() {
#if defined(EMULATED_GPU_TSAN)
  if (stack_ != nullptr && sanitizer_ != nullptr) {
    __tsan_destroy_fiber(sanitizer_);
  }
#endif
  if (stack_ != nullptr) {
    ::munmap(stack_, kStackBytes);
  }
}

void Fiber::adopt() {
  has_run_ = true;
#if defined(EMULATED_GPU_TSAN)
  sanitizer_ = __tsan_get_current_fiber();
#endif
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* bottom = nullptr;
  if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    ::pthread_attr_getstack(&attributes, &bottom, &stack_bytes_);
    ::pthread_attr_destroy(&attributes);
  }
  bottom_ = bottom;
#endif
}

void Fiber::begin(std::function<void()> work) {
  if (stack_ == nullptr) {
    void* memory = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("emulated GPU: no memory for a stack");
      std::abort();
    }
    stack_ = static_cast<std::byte*>(memory);
    stack_bytes_ = kStackBytes;
    bottom_ = stack_;
  }
#if defined(EMULATED_GPU_TSAN)
  if (sanitizer_ == nullptr) {
    sanitizer_ = __tsan_create_fiber(0);
  }
#endif
  work_ = std::move(work);
  has_run_ = false;
  ::getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<unsigned int>(self >> 32U), static_cast<unsigned int>(self));
}

void Fiber::enter(unsigned int high, unsigned int low) {
  auto* self = reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32U | low);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &left->bottom_, &left->stack_bytes_);
#endif
  self->work_();
  std::abort();  // it must not return
}

// setcontext and its like make system calls for the signal mask, so it is used for the first entry
// alone.
void Fiber::switch_to(Fiber& other, [[maybe_unused]] bool ends) {
  left = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ends ? nullptr : &fake_stack_, other.bottom_, other.stack_bytes_);
#endif
  if (_setjmp(where_) == 0) {
#if defined(EMULATED_GPU_TSAN)
    __tsan_switch_to_fiber(other.sanitizer_, __tsan_switch_to_fiber_no_sync);
#endif
    if (other.has_run_) {
      _longjmp(other.where_, 1);
    }
    other.has_run_ = true;
    ::setcontext(&other.context_);
    std::abort();
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

}  // namespace weft_emulated
