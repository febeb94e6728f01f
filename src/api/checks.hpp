// The checks of the arguments of the C functions, as far as WEFT_CHECK_LEVEL asks, each with one sentence for what is
// refused.
//
// Threads: any, between weft_init and weft_finalize.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/api/errors.hpp"
#include "src/api/process.hpp"

namespace weft::api {

// Ok, or InvalidArgument with its sentence set: the context is kInvalidContext, or, with
// WEFT_CHECK_LEVEL=2, none that exists.
Status check_context(const Caller& caller);

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

// Of memory that need not be symmetric, on the other side of `access`: Ok, or InvalidArgument with its
// sentence set, if it is null, or, with WEFT_CHECK_LEVEL=2, overlaps this PE's own side of it.
Status check_local(const Access& access, const void* local);

}  // namespace weft::api
