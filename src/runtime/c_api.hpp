// What the C functions share: the one global of the library, the checks of arguments, and the way
// from a Status or an exception to a return value and a sentence.
//
// Threads: `publish` by weft_init and weft_finalize; everything else by any thread between them.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"
#include "src/base/status.hpp"
#include "src/rma/rma.hpp"
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

// The object behind a handle. A handle that weft_context_create did not return is undefined, except
// with WEFT_CHECK_LEVEL=2.
[[nodiscard]] rma::Context& context_of(weft_context_t context);

// Sets the sentence of weft_last_error and returns the status as a number.
int report(Status status, std::string message);
int report_not_initialized(const char* name);
// Of a call that has run: Ok, or a sentence that says which PE is lost.
int finish(Status status, const char* name);

// An access to symmetric memory of a PE, as a user asked for it.
struct Access {
  const char* name;  // of the function that was called
  const void* address;
  std::size_t bytes;
  int pe;
  std::size_t alignment = 1;
};

// Ok, or NotInitialized or InvalidArgument with its sentence set, as far as WEFT_CHECK_LEVEL asks.
Status check(const Access& access);

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

// The data path behind its fast path: checks, then rma.
int put(weft_context_t context, const Access& dest, const void* source, rma::Blocking blocking);
int get(weft_context_t context, void* dest, const Access& source, rma::Blocking blocking);
// Applies `atomic` and stores the old value at `*result` unless null.
int atomic(weft_context_t context,
           const Access& word,
           const rma::Atomic& atomic,
           std::uint64_t* result);
// As above, the element's old value is at `*result` after quiet at the latest.
int atomic_nbi(weft_context_t context, const Access& word, const rma::Atomic& atomic, void* result);
// Waits until `done`; `what` says for what, if it takes long.
int wait(const char* name, const void* word, FunctionRef<bool()> done);

}  // namespace weft::c_api
