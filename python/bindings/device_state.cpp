#include "device_state.hpp"

#include <weft/device.h>
#include <weft/device/state.hpp>

#include <mutex>

namespace nb = nanobind;

namespace weft::python {
namespace {

// As the library last gave it out.
struct Kept {
  std::mutex mutex;
  device::HotState state;
  bool is_there = false;
};

Kept& kept() {
  static Kept& only = *new Kept;  // the library may call until the process ends
  return only;
}

int keep(const void* given) {
  const std::lock_guard lock(kept().mutex);
  kept().state = *static_cast<const device::DeviceState*>(given);
  kept().is_there = true;
  return 0;
}

// Registered by the first call: programs whose kernels are compiled before they start need none of
// this.
nb::bytes device_state() {
  static weft_device_module module{&keep, nullptr};
  static std::once_flag once;
  std::call_once(once, [] { weft_device_module_register(&module, device::kLayout); });
  const std::lock_guard lock(kept().mutex);
  if (!kept().is_there || weft_device_initialized() == 0) {
    return nb::bytes("", 0);
  }
  return nb::bytes(&kept().state, sizeof kept().state);
}

}  // namespace

void register_device_state(nb::module_& module) {
  module.def("device_state", &device_state);
}

}  // namespace weft::python
