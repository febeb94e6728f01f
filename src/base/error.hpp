// Errors of the control path (init, allocate, register, connect): `weft::Error` contains the
// action, its object, the native error text and a hint, in one line. Broken invariants abort.
//
// The data path does not use this file: it returns `Status` (base/status.hpp).
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/status.hpp"

namespace weft {

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}

  // An unclassified failure.
  explicit Error(const std::string& message) : Error(Status::Internal, message) {}

  [[nodiscard]] Status status() const { return status_; }

 private:
  Status status_;
};

// "Too many open files" for EMFILE: the C library's text, safe from any thread.
[[nodiscard]] std::string errno_words(int error_number);

// Throws Error with the formatted message.
template <typename... Values>
[[noreturn]] void fail(fmt::format_string<Values...> format, Values&&... values) {
  throw Error(fmt::format(format, std::forward<Values>(values)...));
}

template <typename... Values>
[[noreturn]] void fail(Status status, fmt::format_string<Values...> format, Values&&... values) {
  throw Error(status, fmt::format(format, std::forward<Values>(values)...));
}

namespace internal {
[[noreturn]] void abort_with(const char* file,
                             int line,
                             const char* condition,
                             const std::string& state);
}  // namespace internal

}  // namespace weft

// Checks an internal invariant: if it is broken, prints the condition and the state, then aborts.
// Never for user input.
#define WEFT_CHECK(condition, ...)                                                              \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      ::weft::internal::abort_with(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
    }                                                                                           \
  } while (false)
