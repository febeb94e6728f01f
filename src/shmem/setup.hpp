// The part of OpenSHMEM's setup, queries and memory that weft_* does not provide: environment
// variables, thread levels, the old start_pes, and the behavior that the specification requires for
// sizes of 0.
//
// Threads: init, finalize and start_pes by one thread at a time; the rest by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/api/calls.hpp"
#include "src/api/errors.hpp"
#include "src/api/init.hpp"
#include "src/api/process.hpp"

namespace weft::api::shmem {

// Joins the job, or counts another call. If a program returns from main without finalizing, it is
// finalized then.
int init(const Caller& caller, int thread_level);
// Provides all levels; InvalidArgument for a level that does not exist.
int init_thread(const Caller& caller, int requested, int* provided);
[[nodiscard]] int thread_level();
// Only the first call has an effect.
int start_pes(const Caller& caller);
// The call that matches the first init ends the job; all earlier calls are barriers. Does nothing
// if there is nothing to finalize.
int finalize();

[[nodiscard]] int is_pe(int pe);
// 1 if puts and gets can access `address` at `pe`.
[[nodiscard]] int is_accessible(const void* address, int pe);
void copy_name(char* name, std::string_view text);

// Null for a size of 0, without communication.
void* allocate(const Caller& caller, std::size_t bytes);
void* allocate_zeroed(const Caller& caller, std::size_t bytes);
void* allocate_aligned(const Caller& caller, std::size_t alignment, std::size_t bytes);

}  // namespace weft::api::shmem
