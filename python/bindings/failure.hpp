// What a function of this module throws, and how it becomes one of Python's exceptions: weft.Error
// and the classes under it (python/weft/errors.py).
//
// Threads: any. `check` needs no GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

namespace weft::python {

// The class of the exception. The first names are those of weft_status.
enum class Kind {
  Error,
  InvalidArgument,
  NotInitialized,
  PeerLost,
  OutOfMemory,
  Mismatch,
  Timeout,
  NotSymmetric,
  NotMapped,
  NotContiguous,
  WrongDtype,
  WrongShape,
  WrongDevice,
  Freed,
  Forked,
  NoCuda,
};

class Failure : public std::exception {
 public:
  Failure(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  [[nodiscard]] Kind kind() const noexcept { return kind_; }

  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  Kind kind_;
  std::string text_;
};

// Throws what the library says of its last error, unless `status` is WEFT_OK. `name` is that of the
// Python function.
void check_status(int status, const char* name);
// The same, where the library's text does not name what was wrong: a symmetric address of which it
// says only "invalid".
void check_status(int status, const char* name, const void* symmetric);

// The error that the library remembers for this thread, for functions that return a value.
void check_last_error(const char* name);

void register_failure(nanobind::module_& module);

}  // namespace weft::python
