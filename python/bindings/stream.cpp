#include "stream.hpp"

#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "failure.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

// weft._cuda.current_stream(device), kept as long as this module.
PyObject* current_stream = nullptr;
// Set by device_init, before the memory that streams are for exists.
std::atomic<int> device_of_pe = 0;

weft_stream_t stream_at(nb::handle number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a cudaStream_t as Python has it
  return reinterpret_cast<weft_stream_t>(nb::cast<std::uintptr_t>(number));
}

// What a stream object says of its device; the memory's own if it says nothing.
int device_of(nb::handle stream, int device) {
  for (const char* name : {"device_index", "device_id"}) {
    const nb::object index = nb::getattr(stream, name, nb::none());
    int number = -1;
    if (nb::try_cast(index, number) && number >= 0) {
      return number;
    }
  }
  return device;
}

}  // namespace

int own_device() noexcept {
  return device_of_pe;
}

void set_own_device(int device) noexcept {
  device_of_pe = device;
}

weft_stream_t stream_of(nb::handle stream, int device, const char* name) {
  if (stream.is_none()) {
    return stream_at(nb::handle(current_stream)(device));
  }
  if (nb::isinstance<nb::int_>(stream)) {
    return stream_at(stream);
  }
  if (const int other = device_of(stream, device); other != device) {
    throw Failure(Kind::WrongDevice, std::string(name) +
                                         ": the stream is of cuda:" + std::to_string(other) +
                                         " and the array on cuda:" + std::to_string(device) +
                                         "; give a stream of the array's device");
  }
  for (const char* attribute : {"cuda_stream", "ptr"}) {
    if (const nb::object number = nb::getattr(stream, attribute, nb::none()); !number.is_none()) {
      return stream_at(number);
    }
  }
  if (nb::hasattr(stream, "__cuda_stream__")) {
    const nb::object pair = stream.attr("__cuda_stream__")();
    return stream_at(nb::object(pair[1]));
  }
  throw Failure(
      Kind::InvalidArgument,
      std::string(name) + ": stream is a " + nb::cast<std::string>(nb::type_name(stream.type())) +
          "; give a torch.cuda.Stream, a cupy.cuda.Stream, or the number of a cudaStream_t");
}

void refuse_stream(nb::handle stream, const char* name) {
  if (!stream.is_none()) [[unlikely]] {
    throw Failure(Kind::WrongDevice,
                  std::string(name) +
                      ": stream= is for arrays in GPU memory, and this one is in CPU memory; "
                      "leave it out");
  }
}

void register_stream(nb::module_& module) {
  module.def(
      "set_current_stream", [](nb::object function) { current_stream = function.release().ptr(); },
      "function"_a);
}

}  // namespace weft::python
