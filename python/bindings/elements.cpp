#include "elements.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "array.hpp"
#include "docstrings.hpp"
#include "failure.hpp"
#include "indexing.hpp"
#include "memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

// What Python's struct module calls the elements; empty if it cannot.
std::string struct_format(const Dtype& dtype) {
  if (dtype.format == nullptr) {
    return "";
  }
  const std::string format = dtype.format;
  return format.front() == 'Z' ? "=" + std::string(2, format.back()) : "=" + format;
}

bool is_bfloat16(const Dtype& dtype) {
  return dtype.name == "bfloat16";
}

void require_host(const Array& array, const char* name) {
  require_alive(array, name);
  if (array.block->device != kHost) {
    throw Failure(Kind::WrongDevice,
                  std::string(name) +
                      ": the array is in GPU memory; use torch.from_dlpack(array) or "
                      "cupy.from_dlpack(array), which see the same memory");
  }
}

[[noreturn]] void refuse_type(const Array& array, const char* name) {
  throw Failure(Kind::WrongDtype, std::string(name) + ": Python has no numbers of type " +
                                      std::string(array.dtype->name) +
                                      "; use torch.from_dlpack(array)");
}

nb::object element_at(const Array& array, const std::byte* at, const char* name) {
  if (is_bfloat16(*array.dtype)) {
    std::uint16_t upper = 0;
    std::memcpy(&upper, at, sizeof(upper));
    return nb::float_(std::bit_cast<float>(std::uint32_t{upper} << 16U));
  }
  const std::string format = struct_format(*array.dtype);
  if (format.empty()) {
    refuse_type(array, name);
  }
  const nb::bytes bytes(at, array.dtype->bytes());
  const nb::tuple values(nb::module_::import_("struct").attr("unpack")(format, bytes));
  if (values.size() == 1) {
    return values[0];
  }
  return nb::borrow(nb::handle(reinterpret_cast<PyObject*>(&PyComplex_Type)))(values[0], values[1]);
}

// Round to nearest, ties to even; a NaN stays one.
std::uint16_t bfloat16_of(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (value != value) {
    return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

// The bytes of an element that has this value.
std::string bytes_of(const Array& array, nb::handle value) {
  constexpr const char* kName = "Array[...] = ";
  if (is_bfloat16(*array.dtype)) {
    const std::uint16_t bits = bfloat16_of(nb::cast<double>(nb::float_(value)));
    return {reinterpret_cast<const char*>(&bits), sizeof(bits)};
  }
  const std::string format = struct_format(*array.dtype);
  if (format.empty()) {
    refuse_type(array, kName);
  }
  nb::object packed;
  try {
    const nb::object pack = nb::module_::import_("struct").attr("pack");
    if (format.size() == 3) {
      const nb::object number =
          nb::borrow(nb::handle(reinterpret_cast<PyObject*>(&PyComplex_Type)))(value);
      packed = pack(format, number.attr("real"), number.attr("imag"));
    } else {
      packed = pack(format, value);
    }
  } catch (nb::python_error& error) {
    throw Failure(Kind::InvalidArgument,
                  std::string(kName) + nb::cast<std::string>(nb::repr(value)) + ": this is no " +
                      std::string(array.dtype->name) + " (" +
                      nb::cast<std::string>(nb::str(error.value())) + ")");
  }
  const nb::bytes bytes(packed);
  return {bytes.c_str(), bytes.size()};
}

// Calls visit(address) for each element, in C order.
void for_each_element(const Array& array, const std::function<void(std::byte*)>& visit) {
  std::vector<std::int64_t> index(array.shape.size(), 0);
  for (std::int64_t left = array.count(); left > 0; --left) {
    std::int64_t elements = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      elements += index[axis] * array.strides[axis];
    }
    visit(array.address + elements * static_cast<std::int64_t>(array.dtype->bytes()));
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == array.shape[axis];) {
      index[axis] = 0;
    }
  }
}

nb::object only_element(const Array& array, const char* name) {
  require_host(array, name);
  if (array.count() != 1) {
    throw nb::type_error((std::string(name) + ": an array of shape " + shape_text(array.shape) +
                          " is not one number; take one of its elements: array[0]")
                             .c_str());
  }
  return element_at(array, array.address, name);
}

nb::object nested(const Array& array, std::size_t axis, const std::byte* at, const char* name) {
  if (axis == array.shape.size()) {
    return element_at(array, at, name);
  }
  nb::list list;
  const auto step = array.strides[axis] * static_cast<std::int64_t>(array.dtype->bytes());
  for (std::int64_t i = 0; i < array.shape[axis]; ++i) {
    list.append(nested(array, axis + 1, at + i * step, name));
  }
  return list;
}

nb::object to_list(const Array& array) {
  require_host(array, "Array.tolist");
  return nested(array, 0, array.address, "Array.tolist");
}

bool is_number(nb::handle value) {
  PyObject* const object = value.ptr();
  return array_of(value) == nullptr && PyObject_CheckBuffer(object) == 0 &&
         (PyNumber_Check(object) != 0 || PyComplex_Check(object) != 0) &&
         !nb::hasattr(value, "__dlpack__");
}

// numpy's numbers have a buffer: one element of a type that need not be the array's.
nb::object plain_number(nb::handle value) {
  const bool is_scalar = array_of(value) == nullptr && nb::hasattr(value, "item") &&
                         nb::hasattr(value, "shape") &&
                         nb::len(nb::object(value.attr("shape"))) == 0;
  return is_scalar ? nb::object(value.attr("item")()) : nb::borrow(value);
}

void fill(const Array& view, nb::handle number) {
  const std::string bytes = bytes_of(view, number);
  for_each_element(view, [&](std::byte* at) { std::memcpy(at, bytes.data(), bytes.size()); });
}

void copy_from_array(const Array& view, nb::handle value) {
  constexpr const char* kName = "Array[...] = ";
  const Memory from(value, Memory::Use::Read, "Array[...] =: the right side");
  if (from.dtype().dlpack != view.dtype->dlpack) {
    throw Failure(Kind::WrongDtype, std::string(kName) + ": the array is of " +
                                        std::string(view.dtype->name) + " and the value of " +
                                        std::string(from.dtype().name) + "; convert it first");
  }
  if (from.device() != kHost) {
    throw Failure(Kind::WrongDevice, std::string(kName) + ": the value is in GPU memory");
  }
  if (from.count() != static_cast<std::size_t>(view.count())) {
    throw Failure(Kind::WrongShape, std::string(kName) + ": the array has " +
                                        std::to_string(view.count()) + " elements and the value " +
                                        std::to_string(from.count()));
  }
  const auto* source = static_cast<const std::byte*>(from.address());
  const std::size_t bytes = view.dtype->bytes();
  if (view.is_contiguous()) {
    std::memmove(view.address, source, view.bytes());
    return;
  }
  for_each_element(view, [&](std::byte* at) {
    std::memcpy(at, source, bytes);
    source += bytes;
  });
}

void assign(const Array& array, nb::handle key, nb::handle value) {
  require_host(array, "Array[...] = ");
  const Array view = indexed(array, key);
  const nb::object plain = plain_number(value);
  if (is_number(plain)) {
    fill(view, plain);
  } else if (nb::isinstance<nb::list>(plain) || nb::isinstance<nb::tuple>(plain)) {
    if (view.shape.empty() || static_cast<std::int64_t>(nb::len(plain)) != view.shape.front()) {
      throw Failure(Kind::WrongShape, "Array[...] = : " + std::to_string(nb::len(plain)) +
                                          " values for an array of shape " +
                                          shape_text(view.shape));
    }
    for (std::size_t i = 0; i < nb::len(plain); ++i) {
      assign(view, nb::int_(i), nb::object(plain[i]));
    }
  } else {
    copy_from_array(view, plain);
  }
}

}  // namespace

std::string values_text(const Array& array) {
  constexpr std::int64_t kMost = 16;
  const bool has_values = is_bfloat16(*array.dtype) || !struct_format(*array.dtype).empty();
  if (array.block->is_freed() || array.block->device != kHost || array.count() > kMost ||
      !has_values) {
    return "";
  }
  return nb::cast<std::string>(nb::repr(to_list(array)));
}

void register_elements(nb::class_<Array>& type) {
  type.def(
          "item", [](const Array& array) { return only_element(array, "Array.item"); },
          doc("Array.item"))
      .def("tolist", &to_list, doc("Array.tolist"))
      .def("__setitem__", &assign, doc("Array.__setitem__"), "key"_a, "value"_a.none())
      .def("__int__", [](const Array& array) { return nb::int_(only_element(array, "int")); })
      .def("__float__", [](const Array& array) { return nb::float_(only_element(array, "float")); })
      .def("__complex__",
           [](const Array& array) {
             return nb::borrow(nb::handle(reinterpret_cast<PyObject*>(&PyComplex_Type)))(
                 only_element(array, "complex"));
           })
      .def("__index__", [](const Array& array) {
        const nb::object value = only_element(array, "index");
        if (!nb::isinstance<nb::int_>(value)) {
          throw nb::type_error("an array of integers is wanted as an index");
        }
        return value;
      });
}

}  // namespace weft::python
