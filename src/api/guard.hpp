// How a C function enters the library. It returns an error if there is no job, and converts
// exceptions, which must not reach the caller.
//
// Threads: any, between weft_init and weft_finalize.
#pragma once

#include <utility>

#include "src/api/errors.hpp"
#include "src/api/process.hpp"

namespace weft::api {

// For a call that has run: Ok, or an error message that names the lost PE.
int finish(Status status, const char* name);

// Runs `body(Runtime&)` and converts exceptions to a return value.
template <typename Body>
int guarded(const char* name, Body&& body) {
  if (current() == nullptr) {
    return report_not_initialized(name);
  }
  try {
    return std::forward<Body>(body)(runtime());
  } catch (const Error& error) {
    return report(error.status(), error.what());
  } catch (const std::exception& error) {
    return report(Status::Internal, error.what());
  }
}

}  // namespace weft::api
