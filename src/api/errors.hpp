// Converts a Status or an exception to a return value and an error message: weft_last_error, and
// the handling of errors in OpenSHMEM functions that cannot return one.
//
// Threads: any; each has its own last error.
#pragma once

#include <weft/weft.h>

#include <string>

#include "src/base/error.hpp"
#include "src/base/status.hpp"

namespace weft::api {

// Whether a function can return an error or, like most of OpenSHMEM's, can only end the job.
enum class OnError : bool { Return, EndJob };

// The function that the user called.
struct Caller {
  const char* name;
  weft_ctx_t context = WEFT_CTX_DEFAULT;
  OnError on_error = OnError::Return;
};

// Sets the message of weft_last_error and returns the status as a number.
int report(Status status, std::string message);
int report_not_initialized(const char* name);

// Prints the message of weft_last_error, and ends the job.
[[noreturn, gnu::cold, gnu::noinline]] void end_job(const char* name);

// Prefixes the message of weft_last_error with `name`, in place of the function that Weft called.
[[gnu::cold, gnu::noinline]] void rename_error(const char* name);

// Rewrites the message of weft_last_error for OpenSHMEM's function `name`, and prints it if it is
// the first error of the call at `site`.
[[gnu::cold, gnu::noinline]] void say_error(const char* name, const void* site);

// Returns the status of a Weft call made on behalf of `name`. Errors are also printed, because few
// programs check them. Inline, so that its return address is in the program's code.
[[gnu::always_inline]] inline int rename_on_error(const char* name, int status) {
  if (status < 0) [[unlikely]] {
    say_error(name, __builtin_return_address(0));
  }
  return status;
}

// Returns `status` if the call may return it; otherwise ends the job on an error.
inline int end_job_if_failed(const Caller& caller, int status) {
  if (status < 0 && caller.on_error == OnError::EndJob) [[unlikely]] {
    end_job(caller.name);
  }
  return status;
}

// The message of this thread's last failed call; "" if none failed.
[[nodiscard]] const std::string& last_error_text();
// Returns and clears the status of this thread's last error.
[[nodiscard]] Status take_last_error();

}  // namespace weft::api
