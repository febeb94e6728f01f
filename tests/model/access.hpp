// What the threads of a model test call: accesses to its memory, waits and assertions. Each access
// is a point at which another thread may go on.
//
// Only inside the threads of explore() (tests/model/explorer.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>

#include "src/base/function_ref.hpp"

namespace weft::model {

using Site = std::source_location;

// What an atomic update makes of the old value.
struct Change {
  bool is_written = true;  // false: a compare-and-swap that found another value
  std::uint64_t value = 0;
};

std::uint64_t load(const void* address, std::memory_order order, Site at);
void store(void* address, std::uint64_t value, std::memory_order order, Site at);
// Returns the old value.
std::uint64_t update(void* address,
                     std::memory_order order,
                     FunctionRef<Change(std::uint64_t)> change,
                     Site at);
void fence(std::memory_order order, Site at);

// Waits until `done` is true. It is asked again when another thread has written something; what it
// writes itself must not matter to a later question.
void await(FunctionRef<bool()> done);

// futex(2): true if a wake ended the sleep, false if the word did not hold `expected`. No timeout
// ends it.
bool sleep_on(const void* word, std::uint64_t expected, std::uint32_t groups);
void wake(const void* word, std::uint32_t groups);

// Ends the exploration with a violation.
void require(bool holds, const char* what);

// The access is no atomic one: it must be ordered with all others of the same bytes. The compiler
// inserts these calls into the code under test (tests/model/plain_accesses.cpp).
void plain_read(const void* address, std::size_t bytes);
void plain_write(const void* address, std::size_t bytes);

}  // namespace weft::model
