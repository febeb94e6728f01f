// The slow path of the calls whose fast paths are in fast_path.hpp: checks, then rma. The typed
// functions of Weft and all of OpenSHMEM are built on these functions.
//
// Threads: any, between weft_init and weft_finalize. allocate, reallocate and release are
// collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/api/checks.hpp"

namespace weft::api {

// The slow path of the data calls: checks, then rma. Each uses the context of its access.
int put(const Access& dest, const void* source, rma::Blocking blocking);
int get(void* dest, const Access& source, rma::Blocking blocking);
// Applies `atomic` and stores the old value at `*result` unless null.
int atomic(const Access& word, const rma::Atomic& atomic, std::uint64_t* result);
// As atomic, but the old value is stored at `*result` by the time quiet returns.
int atomic_nbi(const Access& word, const rma::Atomic& atomic, void* result);
int put_signal(const Access& dest,
               const void* source,
               const weft_signal& signal,
               rma::Blocking blocking);
int signal_post(const Caller& caller, const weft_signal& signal, int pe);
// `pe` is in the numbering of the call's context.
int iput(const Caller& caller, void* dest, const void* source, const weft_stride& stride, int pe);
int iget(const Caller& caller, void* dest, const void* source, const weft_stride& stride, int pe);

// Strided blocks, with the number of elements in each.
struct BlockStride {
  weft_stride stride;
  std::size_t block = 1;
};

int ibput(const Caller& caller, void* dest, const void* source, const BlockStride& blocks, int pe);
int ibget(const Caller& caller, void* dest, const void* source, const BlockStride& blocks, int pe);
int fence(const Caller& caller);
int quiet(const Caller& caller);
// quiet for operations to these PEs only, in the numbering of the call's context.
int pe_quiet(const Caller& caller, std::span<const int> pes);
// Symmetric memory.
void* allocate(const Caller& caller, std::size_t bytes, std::size_t alignment, bool zeroed);
void* reallocate(const Caller& caller, void* address, std::size_t bytes);
int release(const Caller& caller, void* address);
// Waits until `*word` compares true with `value`; stores the value seen to `*seen` unless null.
int signal_wait_until(const Caller& caller,
                      std::uint64_t* word,
                      weft_comparison comparison,
                      std::uint64_t value,
                      std::uint64_t* seen);

// The variables of this PE that a wait watches.
struct WaitedWords {
  const void* first;
  std::size_t count;
  std::size_t element_bytes;
};

// Waits until `done` returns true; `done` reads `words` and nothing else.
int wait(const char* name, const WaitedWords& words, FunctionRef<bool()> done);

}  // namespace weft::api
