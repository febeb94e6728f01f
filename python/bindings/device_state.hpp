// What kernels need in constant memory where a Python program loads their machine code itself.
//
// Threads: any that is attached to Python.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

// device_state(): the bytes of a HotState (weft/device/state.hpp); none before weft_device_init.
void register_device_state(nanobind::module_& module);

}  // namespace weft::python
