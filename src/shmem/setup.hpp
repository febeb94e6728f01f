// What of OpenSHMEM's setup, queries and memory is not weft_* already: environment variables, thread
// levels, the old start_pes, and the words of the specification for sizes of 0.
//
// Threads: init, finalize and start_pes by one thread at a time; the rest by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/api/calls.hpp"
#include "src/api/errors.hpp"
#include "src/api/process.hpp"

namespace weft::api::shmem {

// Joins the job, or counts another call. A program that returns from main without finalizing is finalized then.
int init(const Caller& caller, int thread_level);
// All levels are provided; InvalidArgument for a level that there is not.
int init_thread(const Caller& caller, int requested, int* provided);
[[nodiscard]] int thread_level();
// The first call counts: later ones do nothing.
int start_pes(const Caller& caller);
// The last of as many calls as there were of init ends the job, all others are barriers. Does nothing when there is
// nothing to finalize.
int finalize();

[[nodiscard]] int is_pe(int pe);
// 1 if puts and gets reach `address` at `pe`.
[[nodiscard]] int is_accessible(const void* address, int pe);
void copy_name(char* name, std::string_view text);

// Null for a size of 0, which no other PE need know of.
void* allocate(const Caller& caller, std::size_t bytes);
void* allocate_zeroed(const Caller& caller, std::size_t bytes);
void* allocate_aligned(const Caller& caller, std::size_t alignment, std::size_t bytes);

// The bytes that SHMEM_SYMMETRIC_SIZE says: a number, perhaps with a fraction, then perhaps K, M, G or T
// (of 1024 each). Pure.
[[nodiscard]] std::optional<std::uint64_t> parse_symmetric_size(std::string_view text);

}  // namespace weft::api::shmem
