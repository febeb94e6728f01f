// The CUDA stream that an operation on GPU memory goes to: of torch, CuPy, a number, or the current
// one.
//
// Threads: any that is attached to Python.
#pragma once

#include <weft/device.h>

#include <nanobind/nanobind.h>

#include "memory.hpp"

namespace weft::python {

// `stream` is what the user gave. Throws WrongDevice for a stream of another device than the
// memory's.
weft_stream_t stream_of(nanobind::handle stream, int device, const char* name);

// The CUDA device of this PE's symmetric memory, for calls that name no memory.
[[nodiscard]] int own_device() noexcept;
void set_own_device(int device) noexcept;

// Throws WrongDevice if a stream was given for memory of the CPU.
void refuse_stream(nanobind::handle stream, const char* name);

void register_stream(nanobind::module_& module);

}  // namespace weft::python
