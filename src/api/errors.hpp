// From a Status or an exception to a return value and a sentence: weft_last_error, and what OpenSHMEM's functions do
// that cannot return an error.
//
// Threads: any; each has its own last error.
#pragma once

#include <weft/weft.h>

#include <string>

#include "src/base/error.hpp"
#include "src/base/status.hpp"

namespace weft::api {

// Whether a function can return an error, or, as most of OpenSHMEM's, has no way but to end the job.
enum class OnError : bool { Return, EndJob };

// A function as the user called it.
struct Caller {
  const char* name;
  weft_context_t context = WEFT_CONTEXT_DEFAULT;
  OnError on_error = OnError::Return;
};

// Sets the sentence of weft_last_error and returns the status as a number.
int report(Status status, std::string message);
int report_not_initialized(const char* name);
// Of a call that has run: Ok, or a sentence that says which PE is lost.
int finish(Status status, const char* name);

// Prints the sentence of weft_last_error, and ends the job.
[[noreturn, gnu::cold, gnu::noinline]] void end_job(const char* name);

// Puts `name` before the sentence of weft_last_error, in place of the function that Weft called.
[[gnu::cold, gnu::noinline]] void rename_error(const char* name);

// Makes the sentence of weft_last_error one of OpenSHMEM's function `name`, and prints it if it is the first error
// of the call at `site`.
[[gnu::cold, gnu::noinline]] void say_error(const char* name, const void* site);

// The status of a call of Weft that stands for a call of `name`, which returns it. Its errors are said as well, as
// hardly a program looks at them. Inline, so that the place it returns to is the program's.
[[gnu::always_inline]] inline int rename_on_error(const char* name, int status) {
  if (status < 0) [[unlikely]] {
    say_error(name, __builtin_return_address(0));
  }
  return status;
}

// `status`, if the call may return it.
inline int end_job_if_failed(const Caller& caller, int status) {
  if (status < 0 && caller.on_error == OnError::EndJob) [[unlikely]] {
    end_job(caller.name);
  }
  return status;
}

// Of this thread's last call that failed; "" if none did.
[[nodiscard]] const std::string& last_error_text();
// The status of this thread's last error, once.
[[nodiscard]] Status take_last_error();

}  // namespace weft::api
