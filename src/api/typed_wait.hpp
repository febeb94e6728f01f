// The templates behind wait_until and test of weft/typed.h. They poll symmetric variables of this
// PE: single variables, or arrays of which some are excluded, as in OpenSHMEM's sections on
// point-to-point synchronization. A search for any variable starts after the last match in the same
// array.
//
// Threads: any. Waiting makes progress; a failed test makes a little progress.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/api/calls.hpp"
#include "src/api/checks.hpp"
#include "src/api/errors.hpp"
#include "src/api/process.hpp"
#include "src/api/search_start.hpp"
#include "src/transport/mapped/atomics.hpp"

namespace weft::api::typed {

// Several variables and the condition to test.
template <typename T>
struct Variables {
  T* ivars;
  std::size_t count;
  const int* status;  // null, or nonzero for variables to exclude
  weft_comparison comparison;
  const T* values;
  std::size_t value_step;  // 0: one value for all; 1: one value each

  [[nodiscard]] bool is_included(std::size_t i) const {
    return status == nullptr || status[i] == 0;
  }
};

template <typename T>
[[nodiscard]] bool compare(T seen, weft_comparison comparison, T value) {
  switch (comparison) {
    case WEFT_EQ:
      return seen == value;
    case WEFT_NE:
      return seen != value;
    case WEFT_GT:
      return seen > value;
    case WEFT_GE:
      return seen >= value;
    case WEFT_LT:
      return seen < value;
    case WEFT_LE:
      return seen <= value;
  }
  return false;
}

// Converts an OpenSHMEM comparison; an unknown comparison becomes 0, which is rejected later.
[[nodiscard]] inline weft_comparison comparison_of(int comparison) {
  const bool is_known = comparison >= WEFT_EQ && comparison <= WEFT_LE;
  return static_cast<weft_comparison>(is_known ? comparison : 0);
}

// OpenSHMEM's wait for a signal; returns the value seen.
[[nodiscard]] inline std::uint64_t signal_wait_until(const Caller& caller,
                                                     std::uint64_t* word,
                                                     int comparison,
                                                     std::uint64_t value) {
  std::uint64_t seen = 0;
  api::signal_wait_until(caller, word, comparison_of(comparison), value, &seen);
  return seen;
}

// 0 before init: check then reports the error.
[[nodiscard]] inline int this_pe() {
  return current() == nullptr ? 0 : static_cast<int>(runtime().pe().value);
}

template <typename T>
[[nodiscard]] Status check_variables(const char* name, const Variables<T>& variables) {
  if (variables.comparison < WEFT_EQ || variables.comparison > WEFT_LE) {
    report(Status::InvalidArgument, fmt::format("{}: invalid comparison {}; use WEFT_EQ to WEFT_LE",
                                                name, static_cast<int>(variables.comparison)));
    return Status::InvalidArgument;
  }
  if (const Status status = variables.count == 0
                                ? Status::Ok
                                : check_given(name, "the array of values", variables.values);
      status != Status::Ok) {
    return status;
  }
  const std::size_t bytes =
      variables.count > SIZE_MAX / sizeof(T) ? SIZE_MAX : variables.count * sizeof(T);
  return check({name, variables.ivars, bytes, this_pe(), sizeof(T)});
}

template <typename T>
[[nodiscard]] bool are_valid(const Caller& caller, const Variables<T>& variables) {
  return end_job_if_failed(caller, static_cast<int>(check_variables(caller.name, variables))) ==
         WEFT_OK;
}

// For the indices of variables.
[[nodiscard]] inline bool has_room(const Caller& caller, const std::size_t* indices) {
  const Status status = check_given(caller.name, "the array of indices", indices);
  return end_job_if_failed(caller, static_cast<int>(status)) == WEFT_OK;
}

template <typename T>
[[nodiscard]] WaitedWords words_of(const Variables<T>& variables) {
  return {variables.ivars, variables.count, sizeof(T)};
}

template <typename T>
[[nodiscard]] bool holds(const Variables<T>& variables, std::size_t i) {
  return compare(transport::load_word(variables.ivars + i), variables.comparison,
                 variables.values[i * variables.value_step]);
}

// The first included variable that does not satisfy the condition; count if there is none.
template <typename T>
[[nodiscard]] std::size_t first_open(const Variables<T>& variables, std::size_t from) {
  while (from < variables.count && (!variables.is_included(from) || holds(variables, from))) {
    ++from;
  }
  return from;
}

// An included variable that satisfies the condition: the first from `start` on, wrapping around;
// count if none does.
template <typename T>
[[nodiscard]] std::size_t one_that_holds(const Variables<T>& variables, std::size_t start) {
  std::size_t i = start;
  for (std::size_t tried = 0; tried < variables.count; ++tried) {
    if (variables.is_included(i) && holds(variables, i)) {
      return i;
    }
    i = i + 1 == variables.count ? 0 : i + 1;
  }
  return variables.count;
}

template <typename T>
[[nodiscard]] bool includes_any(const Variables<T>& variables) {
  std::size_t i = 0;
  while (i < variables.count && !variables.is_included(i)) {
    ++i;
  }
  return i < variables.count;
}

template <typename T>
std::size_t collect(const Variables<T>& variables, std::size_t* indices) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < variables.count; ++i) {
    if (variables.is_included(i) && holds(variables, i)) {
      indices[found++] = i;
    }
  }
  return found;
}

template <typename T>
int wait_until_all(const Caller& caller, const Variables<T>& variables) {
  if (const Status status = check_variables(caller.name, variables); status != Status::Ok) {
    return end_job_if_failed(caller, static_cast<int>(status));
  }
  std::size_t open = 0;
  // Waits for one variable at a time: a change of a later variable wakes nobody.
  WaitedWords words{variables.ivars, 1, sizeof(T)};
  return end_job_if_failed(caller, wait(caller.name, words, [&] {
                             open = first_open(variables, open);
                             words.first = variables.ivars + std::min(open, variables.count - 1);
                             return open == variables.count;
                           }));
}

template <typename T>
int wait_until(const Caller& caller, T* ivar, weft_comparison comparison, T value) {
  return wait_until_all<T>(caller, {ivar, 1, nullptr, comparison, &value, 0});
}

template <typename T>
std::size_t wait_until_any(const Caller& caller, const Variables<T>& variables) {
  if (!are_valid(caller, variables) || !includes_any(variables)) {
    return SIZE_MAX;
  }
  SearchStart& start = search_start(variables.ivars, variables.count);
  std::size_t found = variables.count;
  const int status = wait(caller.name, words_of(variables), [&] {
    found = one_that_holds(variables, start.position);
    return found < variables.count;
  });
  if (end_job_if_failed(caller, status) != WEFT_OK) {
    return SIZE_MAX;
  }
  start.advance(found, variables.count);
  return found;
}

template <typename T>
std::size_t wait_until_some(const Caller& caller,
                            const Variables<T>& variables,
                            std::size_t* indices) {
  if (!are_valid(caller, variables) || !includes_any(variables) || !has_room(caller, indices)) {
    return 0;
  }
  std::size_t found = 0;
  end_job_if_failed(caller, wait(caller.name, words_of(variables), [&] {
                      found = collect(variables, indices);
                      return found > 0;
                    }));
  return found;
}

template <typename T>
int test_all(const Caller& caller, const Variables<T>& variables) {
  if (const Status status = check_variables(caller.name, variables); status != Status::Ok) {
    return end_job_if_failed(caller, static_cast<int>(status));
  }
  if (first_open(variables, 0) == variables.count) {
    return 1;
  }
  current()->progress();
  return 0;
}

template <typename T>
int test(const Caller& caller, T* ivar, weft_comparison comparison, T value) {
  return test_all<T>(caller, {ivar, 1, nullptr, comparison, &value, 0});
}

template <typename T>
std::size_t test_any(const Caller& caller, const Variables<T>& variables) {
  if (!are_valid(caller, variables) || variables.count == 0) {
    return SIZE_MAX;
  }
  SearchStart& start = search_start(variables.ivars, variables.count);
  const std::size_t found = one_that_holds(variables, start.position);
  if (found < variables.count) {
    start.advance(found, variables.count);
    return found;
  }
  current()->progress();
  return SIZE_MAX;
}

template <typename T>
std::size_t test_some(const Caller& caller, const Variables<T>& variables, std::size_t* indices) {
  if (!are_valid(caller, variables) || (variables.count > 0 && !has_room(caller, indices))) {
    return 0;
  }
  const std::size_t found = collect(variables, indices);
  if (found == 0) {
    current()->progress();
  }
  return found;
}

}  // namespace weft::api::typed
