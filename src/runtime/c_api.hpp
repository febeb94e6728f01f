// What the C functions share: the one global of the library, the checks of arguments, and the way
// from a Status or an exception to a return value and a sentence.
//
// Threads: `publish` by weft_init and weft_finalize; everything else by any thread between them.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"
#include "src/base/status.hpp"
#include "src/rma/rma.hpp"
#include "src/runtime/contexts.hpp"
#include "src/runtime/runtime.hpp"

namespace weft::c_api {

// What the fast path of every data call loads; null before init and after finalize.
extern rma::Rma* rma_of_process;

inline void publish(rma::Rma* rma) {
  // SYNC runtime-pointer: whoever sees the pointer sees the runtime behind it.
  AtomicRef(rma_of_process).store(rma, std::memory_order_release);
}

[[nodiscard]] inline rma::Rma* current() {
  // SYNC runtime-pointer: pairs with publish.
  return AtomicRef(rma_of_process).load(std::memory_order_acquire);
}

// The process's runtime; only where current() is not null.
[[nodiscard]] runtime::Runtime& runtime();

// All PEs but this one: those that a wait for nobody in particular may be waiting for.
[[nodiscard]] std::span<const Pe> others();

// Where weft_init and shmem_init differ.
struct InitOptions {
  const char* name;
  bool symmetric_globals = false;
  void (*adjust)(Config& config) = nullptr;  // what else the environment says; may throw Error
};

// Joins the job; WEFT_OK, or a status whose sentence is set and printed.
int initialize(const InitOptions& options);

// Whether a process that finalizes may join again: it then keeps its way to the others until leave_job.
enum class LinkUse : bool { Keep, Leave };
int finalize(LinkUse use);
// Nothing while a job runs.
void leave_job();

// OpenSHMEM's SHMEM_CTX_INVALID.
inline const weft_context_t kInvalidContext = reinterpret_cast<weft_context_t>(UINTPTR_MAX);

// Files of device code that come from now on are told nothing.
void forget_device();

// Whether a function can return an error, or, as most of OpenSHMEM's, has no way but to end the job.
enum class OnError : bool { Return, EndJob };

// A function as the user called it.
struct Caller {
  const char* name;
  weft_context_t context = WEFT_CONTEXT_DEFAULT;
  OnError on_error = OnError::Return;
};

// The object behind a handle. A handle that nobody returned is undefined, except kInvalidContext,
// which check refuses.
[[nodiscard]] rma::Context& context_of(weft_context_t context);

// All but the default one.
[[nodiscard]] runtime::Contexts& contexts();
// Both complete what is under way on them first.
Status destroy_contexts_of(weft_team_t team);
Status destroy_all_contexts();

// Ok, or InvalidArgument with its sentence set: the context is kInvalidContext, or, with
// WEFT_CHECK_LEVEL=2, none that exists.
Status check_context(const Caller& caller);

// The job's number of the context's PE `pe`; kNoPe if there is none.
[[nodiscard]] inline std::uint32_t world_pe(weft_context_t context, int pe) {
  if (context == WEFT_CONTEXT_DEFAULT) [[likely]] {
    return static_cast<std::uint32_t>(pe);
  }
  return context == kInvalidContext ? rma::kNoPe
                                    : reinterpret_cast<const rma::Context*>(context)->world_pe(
                                          static_cast<std::uint32_t>(pe));
}

// Sets the sentence of weft_last_error and returns the status as a number.
int report(Status status, std::string message);
int report_not_initialized(const char* name);
// Of a call that has run: Ok, or a sentence that says which PE is lost.
int finish(Status status, const char* name);

// Prints the sentence of weft_last_error, and ends the job.
[[noreturn, gnu::cold, gnu::noinline]] void end_job(const char* name);

// Puts `name` before the sentence of weft_last_error, in place of the function that Weft called.
[[gnu::cold, gnu::noinline]] void rename_error(const char* name);

// Makes the sentence of weft_last_error one of OpenSHMEM's function `name`, and prints it if it is the first error
// of the call at `site`.
[[gnu::cold, gnu::noinline]] void say_error(const char* name, const void* site);

// The status of a call of Weft that stands for a call of `name`, which returns it. Its errors are said as well, as
// hardly a program looks at them. Inline, so that the place it returns to is the program's.
[[gnu::always_inline]] inline int named(const char* name, int status) {
  if (status < 0) [[unlikely]] {
    say_error(name, __builtin_return_address(0));
  }
  return status;
}

// `status`, if the call may return it.
inline int settled(const Caller& caller, int status) {
  if (status < 0 && caller.on_error == OnError::EndJob) [[unlikely]] {
    end_job(caller.name);
  }
  return status;
}

// An access to symmetric memory of a PE, as a user asked for it.
struct Access {
  const char* name;  // of the function that was called
  const void* address;
  std::size_t bytes;
  int pe;  // as the context numbers them
  std::size_t alignment = 1;
  weft_context_t context = WEFT_CONTEXT_DEFAULT;
};

// Ok, or NotInitialized or InvalidArgument with its sentence set, as far as WEFT_CHECK_LEVEL asks.
Status check(const Access& access);

// Memory, as a user gave it.
struct Bytes {
  const void* address = nullptr;
  std::size_t bytes = 0;
};

[[nodiscard]] inline bool overlap(const Bytes& a, const Bytes& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.address);
  const auto second = reinterpret_cast<std::uintptr_t>(b.address);
  return first < second + b.bytes && second < first + a.bytes;
}

// WEFT_CHECK_LEVEL.
[[nodiscard]] std::int64_t check_level();

// Of memory that need not be symmetric, on the other side of `access`: Ok, or InvalidArgument with its
// sentence set, if it is null, or, with WEFT_CHECK_LEVEL=2, overlaps this PE's own side of it.
Status check_local(const Access& access, const void* local);

// Runs `body(Runtime&)` and turns what it throws into a return value.
template <typename Body>
int guarded(const char* name, Body&& body) {
  if (current() == nullptr) {
    return report_not_initialized(name);
  }
  try {
    return std::forward<Body>(body)(runtime());
  } catch (const Error& error) {
    return report(error.status(), error.what());
  } catch (const std::exception& error) {
    return report(Status::Internal, error.what());
  }
}

// The data path behind its fast path: checks, then rma. Each on the context of its access.
int put(const Access& dest, const void* source, rma::Blocking blocking);
int get(void* dest, const Access& source, rma::Blocking blocking);
// Applies `atomic` and stores the old value at `*result` unless null.
int atomic(const Access& word, const rma::Atomic& atomic, std::uint64_t* result);
// As above, the element's old value is at `*result` after quiet at the latest.
int atomic_nbi(const Access& word, const rma::Atomic& atomic, void* result);
int put_signal(const Access& dest,
               const void* source,
               const weft_signal& signal,
               rma::Blocking blocking);
int signal_post(const Caller& caller, const weft_signal& signal, int pe);
// `pe` is as the context of the call numbers them.
int iput(const Caller& caller, void* dest, const void* source, const weft_stride& stride, int pe);
int iget(const Caller& caller, void* dest, const void* source, const weft_stride& stride, int pe);

// Strided blocks of so many elements each.
struct BlockStride {
  weft_stride stride;
  std::size_t block = 1;
};

int ibput(const Caller& caller, void* dest, const void* source, const BlockStride& blocks, int pe);
int ibget(const Caller& caller, void* dest, const void* source, const BlockStride& blocks, int pe);
int fence(const Caller& caller);
int quiet(const Caller& caller);
// Of what was towards these PEs, as the context of the call numbers them.
int pe_quiet(const Caller& caller, std::span<const int> pes);
// On symmetric memory.
void* allocate(const Caller& caller, std::size_t bytes, std::size_t alignment, bool zeroed);
void* reallocate(const Caller& caller, void* address, std::size_t bytes);
int release(const Caller& caller, void* address);
// Waits until `*word` compares to `value`; what it saw goes to `*seen` unless null.
int signal_wait_until(const Caller& caller,
                      std::uint64_t* word,
                      weft_comparison comparison,
                      std::uint64_t value,
                      std::uint64_t* seen);

// The variables of this PE that a wait is for.
struct WaitedWords {
  const void* first;
  std::size_t count;
  std::size_t element_bytes;
};

// Waits until `done`, which looks at `words` and nothing else.
int wait(const char* name, const WaitedWords& words, FunctionRef<bool()> done);

}  // namespace weft::c_api
