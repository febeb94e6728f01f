// Shared by the C functions for GPUs: access from the process's runtime to its GPU, and the error
// messages if it has none.
//
// Threads: any, between weft_init and weft_finalize.
#pragma once

#include <weft/device.h>

#include <utility>

#include "src/api/guard.hpp"
#include "src/gpu/device.hpp"
#include "src/runtime/device/job.hpp"

namespace weft::api {

// Null before weft_device_init and after weft_finalize.
[[nodiscard]] inline runtime::DeviceJob* device_job() {
  return current() == nullptr ? nullptr : runtime().device();
}

int report_no_device(const char* name);

// Device modules that register later get no state.
void forget_device();

// Runs `body(DeviceJob&)` and converts exceptions to a return value. For calls that only enqueue:
// all their CUDA calls are legal while a graph is captured.
template <typename Body>
int enqueue_with_device(const char* name, Body&& body) {
  return guarded(name, [&](runtime::Runtime& runtime) {
    return runtime.device() == nullptr ? report_no_device(name)
                                       : std::forward<Body>(body)(*runtime.device());
  });
}

// The same for all others: as guests of the program's thread.
template <typename Body>
int with_device(const char* name, Body&& body) {
  return enqueue_with_device(name, [&](runtime::DeviceJob& device) {
    const gpu::BorrowedThread borrowed;
    return std::forward<Body>(body)(device);
  });
}

}  // namespace weft::api
