// Shared by the C functions for GPUs: access from the process's runtime to its GPU, and the error messages
// if it has none.
//
// Threads: any, between weft_init and weft_finalize.
#pragma once

#include <weft/device.h>

#include <utility>

#include "src/api/process.hpp"
#include "src/runtime/device/job.hpp"

namespace weft::api {

// Null before weft_device_init and after weft_finalize.
[[nodiscard]] inline runtime::DeviceJob* device_job() {
  return current() == nullptr ? nullptr : runtime().device();
}

int report_no_device(const char* name);

// Runs `body(DeviceJob&)` and converts exceptions to a return value.
template <typename Body>
int with_device(const char* name, Body&& body) {
  return guarded(name, [&](runtime::Runtime& runtime) {
    return runtime.device() == nullptr ? report_no_device(name)
                                       : std::forward<Body>(body)(*runtime.device());
  });
}

}  // namespace weft::api
