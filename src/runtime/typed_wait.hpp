// The templates behind wait_until and test of weft/typed.h: polls symmetric variables of this PE,
// single ones and arrays of which some are left out, as in OpenSHMEM 1.5, sections 9.10 and 9.11.
//
// Threads: any. Waiting makes progress; a test that fails makes a little.
#pragma once

#include <cstdint>

#include "src/runtime/c_api.hpp"
#include "src/transport/mapped/atomics.hpp"

namespace weft::c_api::typed {

// Several variables and what is asked of them.
template <typename T>
struct Variables {
  T* ivars;
  std::size_t count;
  const int* status;  // null, or which to leave out
  weft_comparison comparison;
  T value;

  [[nodiscard]] bool is_included(std::size_t i) const {
    return status == nullptr || status[i] == 0;
  }
};

template <typename T>
[[nodiscard]] bool compare(const T* ivar, weft_comparison comparison, T value) {
  const T seen = transport::load_word(ivar);
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

template <typename T>
[[nodiscard]] Status check_variables(const char* name, const Variables<T>& variables) {
  if (variables.comparison < WEFT_EQ || variables.comparison > WEFT_LE) {
    report(Status::InvalidArgument,
           fmt::format("{}: there is no comparison {}; use WEFT_EQ to WEFT_LE", name,
                       static_cast<int>(variables.comparison)));
    return Status::InvalidArgument;
  }
  const std::size_t bytes =
      variables.count > SIZE_MAX / sizeof(T) ? SIZE_MAX : variables.count * sizeof(T);
  return check({name, variables.ivars, bytes, weft_pe(), sizeof(T)});
}

template <typename T>
[[nodiscard]] bool holds(const Variables<T>& variables, std::size_t i) {
  return compare(variables.ivars + i, variables.comparison, variables.value);
}

// The first included variable that fails to hold; count if none does.
template <typename T>
[[nodiscard]] std::size_t first_open(const Variables<T>& variables, std::size_t from) {
  while (from < variables.count && (!variables.is_included(from) || holds(variables, from))) {
    ++from;
  }
  return from;
}

// The first included variable that holds; count if none does.
template <typename T>
[[nodiscard]] std::size_t first_that_holds(const Variables<T>& variables) {
  std::size_t i = 0;
  while (i < variables.count && !(variables.is_included(i) && holds(variables, i))) {
    ++i;
  }
  return i;
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
int wait_until_all(const Variables<T>& variables) {
  if (const Status status = check_variables("weft_wait_until", variables); status != Status::Ok) {
    return static_cast<int>(status);
  }
  std::size_t open = 0;
  return wait("weft_wait_until", variables.ivars, [&] {
    open = first_open(variables, open);
    return open == variables.count;
  });
}

template <typename T>
int wait_until(T* ivar, weft_comparison comparison, T value) {
  return wait_until_all<T>({ivar, 1, nullptr, comparison, value});
}

template <typename T>
std::size_t wait_until_any(const Variables<T>& variables) {
  if (check_variables("weft_wait_until_any", variables) != Status::Ok || !includes_any(variables)) {
    return SIZE_MAX;
  }
  std::size_t found = variables.count;
  const int status = wait("weft_wait_until_any", variables.ivars, [&] {
    found = first_that_holds(variables);
    return found < variables.count;
  });
  return status == WEFT_OK ? found : SIZE_MAX;
}

template <typename T>
std::size_t wait_until_some(const Variables<T>& variables, std::size_t* indices) {
  if (check_variables("weft_wait_until_some", variables) != Status::Ok ||
      !includes_any(variables)) {
    return 0;
  }
  std::size_t found = 0;
  wait("weft_wait_until_some", variables.ivars, [&] {
    found = collect(variables, indices);
    return found > 0;
  });
  return found;
}

template <typename T>
int test_all(const Variables<T>& variables) {
  if (const Status status = check_variables("weft_test", variables); status != Status::Ok) {
    return static_cast<int>(status);
  }
  if (first_open(variables, 0) == variables.count) {
    return 1;
  }
  current()->progress();
  return 0;
}

template <typename T>
int test(T* ivar, weft_comparison comparison, T value) {
  return test_all<T>({ivar, 1, nullptr, comparison, value});
}

template <typename T>
std::size_t test_any(const Variables<T>& variables) {
  if (check_variables("weft_test_any", variables) != Status::Ok) {
    return SIZE_MAX;
  }
  const std::size_t found = first_that_holds(variables);
  if (found < variables.count) {
    return found;
  }
  current()->progress();
  return SIZE_MAX;
}

template <typename T>
std::size_t test_some(const Variables<T>& variables, std::size_t* indices) {
  if (check_variables("weft_test_some", variables) != Status::Ok) {
    return 0;
  }
  const std::size_t found = collect(variables, indices);
  if (found == 0) {
    current()->progress();
  }
  return found;
}

}  // namespace weft::c_api::typed
