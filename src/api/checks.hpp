// Checks the arguments of the C functions, as far as WEFT_CHECK_LEVEL requires, with one error
// message per rejected argument.
//
// Threads: any, between weft_init and weft_finalize.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/api/guard.hpp"

namespace weft::api {

// Ok, or InvalidArgument with its message set: the context is kInvalidContext or, with
// WEFT_CHECK_LEVEL=2, does not exist.
Status check_context(const Caller& caller);

// A user's access to symmetric memory of a PE.
struct Access {
  const char* name;  // of the called function
  const void* address;
  std::size_t bytes;
  int pe;  // in the numbering of the context
  std::size_t alignment = 1;
  weft_ctx_t context = WEFT_CTX_DEFAULT;
};

// Ok, or NotInitialized or InvalidArgument with its message set, as far as WEFT_CHECK_LEVEL
// requires. On Ok `*place`, unless null, is where the memory lies; it says nothing of no bytes.
Status check(const Access& access, heap::Place* place = nullptr);

// A memory range given by the user.
struct Bytes {
  const void* address = nullptr;
  std::size_t bytes = 0;
};

[[nodiscard]] inline bool overlap(const Bytes& a, const Bytes& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.address);
  const auto second = reinterpret_cast<std::uintptr_t>(b.address);
  return first < second + b.bytes && second < first + a.bytes;
}

// Checks the other, local side of `access`, which need not be symmetric. InvalidArgument with its
// message set if it is null or, with WEFT_CHECK_LEVEL=2, if it overlaps this PE's own side of the
// access; otherwise Ok.
Status check_local(const Access& access, const void* local);

// Ok, or InvalidArgument with its message set: `what`, which the call reads or fills, is null.
Status check_given(const char* name, const char* what, const void* pointer);

// Whether the signal's word may be updated at access.pe: Ok and the signal, or as check.
Status check_signal(const Access& data, const weft_signal& signal, rma::Signal& result);

}  // namespace weft::api
