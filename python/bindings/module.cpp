// weft._weft: the C interface for Python. python/weft/__init__.py shows it to users; what is
// documented stands in python/weft/_weft.pyi and there.
#include <weft/device.h>
#include <weft/weft.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dlfcn.h>

#include "array.hpp"
#include "context.hpp"
#include "device_state.hpp"
#include "exchange.hpp"
#include "failure.hpp"
#include "indexing.hpp"
#include "memory.hpp"
#include "moe/python/bindings/moe.hpp"
#include "rma.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_weft, module) {
  nb::set_leak_warnings(
      false);  // arrays in global variables live until the interpreter ends, as in numpy
  weft::python::register_failure(module);
  weft::python::register_session(module);
  weft::python::register_exchange();
  weft::python::register_array(module);
  weft::python::register_context(module);
  weft::python::register_rma(module);
  weft::python::register_strided(module);
  weft::python::register_signals(module);
  weft::python::register_lists(module);
  weft::python::register_waits(module);
  weft::python::register_atomics(module);
  weft::python::register_teams(module);
  weft::python::register_stream(module);
  weft::python::register_moe(module);
  weft::python::register_device_state(module);
  module.def("shape_of",
             [](nb::handle shape) { return weft::python::shape_of(shape, "weft.empty"); });
  module.def("element_bytes", [](const std::string& name) {
    const weft::python::Dtype* dtype = weft::python::find_dtype(name);
    return dtype == nullptr ? 0 : dtype->bytes();
  });
  module.def("address_of", [](nb::handle object) {
    const weft::python::Memory memory(object, weft::python::Memory::Use::Write,
                                      "weft.register: the array");
    return reinterpret_cast<std::uintptr_t>(memory.address());
  });
  module.def("library_path", [] {
    Dl_info found{};
    return dladdr(reinterpret_cast<void*>(&weft_init), &found) != 0 ? std::string(found.dli_fname)
                                                                    : std::string();
  });
  module.def("dtype_names", [] { return std::string(weft::python::dtype_names()); });
  module.def(
      "device_init",
      [](int device) {
        weft::python::run("weft.init", [] { return weft_device_init(); });
        weft::python::set_own_device(device);
      },
      "device"_a);
  module.def("device_initialized", [] { return weft_device_initialized() != 0; });
  module.def("device_check",
             [] { weft::python::run("weft.device_check", [] { return weft_device_check(); }); });
}
