// Whether this process may call Weft now: between init and finalize, and not in a child that was
// forked from a PE. Also calls that wait: without the GIL, and ended by Ctrl-C.
//
// Threads: any. The state changes in init and finalize, which the caller keeps apart from other
// calls.
#pragma once

#include <weft/weft.h>

#include <nanobind/nanobind.h>

#include <type_traits>

#include "failure.hpp"

namespace weft::python {

enum class State { Before, Ready, Finalized, Forked };

State state();

[[noreturn]] void refuse_state(const char* name);

// Throws NotInitialized or Forked, in the name of a Python function.
inline void require_ready(const char* name) {
  if (state() != State::Ready) [[unlikely]] {
    refuse_state(name);
  }
}

// While one exists, the calling thread waits in `name` for other PEs: without the GIL, and Ctrl-C
// ends the job.
class Waiting {
 public:
  explicit Waiting(const char* name);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

 private:
  const char* outer_;
  nanobind::gil_scoped_release without_gil_;
};

// Runs a call of the library that returns a status, and throws its error. For calls that end by
// themselves.
template <typename Call>
void run(const char* name, Call&& call) {
  require_ready(name);
  int status = WEFT_OK;
  {
    const Waiting waiting(name);
    status = call();
  }
  check_status(status, name);
}

void register_session(nanobind::module_& module);

}  // namespace weft::python
