#include "array.hpp"

#include <weft/device.h>
#include <weft/weft.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <string>

#include "docstrings.hpp"
#include "elements.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "indexing.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

constexpr int kDlpackHost = 1;
constexpr int kDlpackCuda = 2;

std::string device_name(const Array& array) {
  return array.block->device == kHost ? "cpu" : "cuda:" + std::to_string(array.block->device);
}

// Wraps memory that weft_malloc or weft_device_malloc returned.
Array wrap(std::uintptr_t address,
           std::vector<std::int64_t> shape,
           const std::string& dtype,
           int device) {
  Array array;
  array.dtype = find_dtype(dtype);
  array.address = reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  array.strides = contiguous_strides(shape);
  array.shape = std::move(shape);
  array.block = std::make_shared<Block>();
  array.block->address = array.address;
  array.block->bytes = array.bytes();
  array.block->device = device;
  remember(array.block);
  return array;
}

Array peer_view(const Array& array, int pe) {
  require_alive(array, "Array.peer");
  void* mapped = array.block->device == kHost ? weft_ptr(array.address, pe)
                                              : weft_device_ptr(array.address, pe);
  if (mapped == nullptr) {
    if (pe < 0 || pe >= weft_pe_count()) {
      check_last_error("Array.peer");
      throw Failure(Kind::InvalidArgument, "Array.peer: there is no PE " + std::to_string(pe) +
                                               "; PEs are 0 to " +
                                               std::to_string(weft_pe_count() - 1));
    }
    weft_take_error();
    throw Failure(Kind::NotMapped, "Array.peer: the memory of PE " + std::to_string(pe) +
                                       " is not mapped here; reach it with weft.put and weft.get "
                                       "(weft.is_mapped tells beforehand)");
  }
  Array view = array;
  view.address = static_cast<std::byte*>(mapped);
  view.block = std::make_shared<Block>();
  view.block->address = view.address;
  view.block->bytes = array.bytes();
  view.block->device = array.block->device;
  view.block->is_peer = true;
  remember(view.block);
  return view;
}

Array reshaped(const Array& array, std::vector<std::int64_t> shape) {
  require_alive(array, "Array.reshape");
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& extent : shape) {
    if (extent == -1 && open == nullptr) {
      open = &extent;
    } else {
      known *= extent;
    }
  }
  if (open != nullptr && known > 0) {
    *open = array.count() / known;
    known *= *open;
  }
  if (known != array.count()) {
    throw Failure(Kind::WrongShape, "Array.reshape: an array of shape " + shape_text(array.shape) +
                                        " has " + std::to_string(array.count()) +
                                        " elements, and " + shape_text(shape) + " has " +
                                        std::to_string(known));
  }
  if (!array.is_contiguous()) {
    throw Failure(Kind::NotContiguous,
                  "Array.reshape: only a contiguous array can be reshaped without a copy; this is "
                  "a view with gaps");
  }
  Array result = array;
  result.strides = contiguous_strides(shape);
  result.shape = std::move(shape);
  return result;
}

std::string repr(const Array& array) {
  const std::string peer = array.block->is_peer ? ", of a peer" : "";
  const std::string freed = array.block->is_freed() ? ", freed" : "";
  const std::string values = values_text(array);
  return "weft.Array(" + values + (values.empty() ? "" : ", ") +
         "shape=" + shape_text(array.shape) + ", dtype=" + std::string(array.dtype->name) +
         ", device=" + device_name(array) + peer + freed + ")";
}

// What __dlpack__ of the array is asked for is answered by nanobind's object for the same memory.
nb::object dlpack(nb::handle self, const nb::kwargs& arguments) {
  const auto& array = nb::cast<const Array&>(self);
  require_alive(array, "Array.__dlpack__");
  const std::vector<std::size_t> shape(array.shape.begin(), array.shape.end());
  const nb::object owner = export_of(array.block);
  const bool is_host = array.block->device == kHost;
  const nb::ndarray<nb::array_api> view(
      array.address, shape.size(), shape.data(), owner, array.strides.data(), array.dtype->dlpack,
      is_host ? kDlpackHost : kDlpackCuda, is_host ? 0 : array.block->device);
  const nb::object object = nb::cast(view, nb::rv_policy::reference);
  return object.attr("__dlpack__")(**arguments);
}

nb::tuple dlpack_device(const Array& array) {
  return array.block->device == kHost ? nb::make_tuple(kDlpackHost, 0)
                                      : nb::make_tuple(kDlpackCuda, array.block->device);
}

nb::tuple shape_tuple(const std::vector<std::int64_t>& numbers) {
  return nb::tuple(nb::cast(numbers));
}

void refuse_pickle(const Array&) {
  throw Failure(Kind::InvalidArgument,
                "a symmetric array cannot be pickled: it is memory of this PE that others reach; "
                "send numpy.array(array), a copy, to other processes");
}

void register_methods(nb::class_<Array>& type) {
  type.def("__repr__", &repr)
      .def("__len__",
           [](const Array& array) {
             if (array.shape.empty()) {
               throw nb::type_error("an array of one element and no dimension has no len()");
             }
             return array.shape.front();
           })
      .def("__getitem__", &indexed, "key"_a)
      .def("reshape",
           [](const Array& array, const nb::args& shape) {
             return reshaped(array, shape_of(shape, "Array.reshape"));
           })
      .def("peer", &peer_view, doc("Array.peer"), "pe"_a)
      .def("__dlpack__", &dlpack)
      .def("__dlpack_device__", &dlpack_device)
      .def("__reduce_ex__", [](const Array& array, int) { refuse_pickle(array); });
}

void register_properties(nb::class_<Array>& type) {
  type.def_prop_ro("shape", [](const Array& array) { return shape_tuple(array.shape); })
      .def_prop_ro("strides", [](const Array& array) { return shape_tuple(array.strides); })
      .def_prop_ro("ndim", [](const Array& array) { return array.shape.size(); })
      .def_prop_ro("size", &Array::count)
      .def_prop_ro("nbytes", &Array::bytes)
      .def_prop_ro("itemsize", [](const Array& array) { return array.dtype->bytes(); })
      .def_prop_ro("dtype", [](const Array& array) { return std::string(array.dtype->name); })
      .def_prop_ro("device", &device_name)
      .def_prop_ro(
          "address",
          [](const Array& array) { return reinterpret_cast<std::uintptr_t>(array.address); })
      .def_prop_ro("is_contiguous", &Array::is_contiguous)
      .def_prop_ro("is_freed", [](const Array& array) { return array.block->is_freed(); })
      .def_prop_ro("is_peer", [](const Array& array) { return array.block->is_peer; })
      .def_prop_ro("_exports", [](const Array& array) { return array.block->exports.load(); })
      .def_prop_ro("_is_whole", [](const Array& array) {
        return array.address == array.block->address && array.bytes() == array.block->bytes;
      });
}

}  // namespace

std::int64_t Array::count() const noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool Array::is_contiguous() const noexcept {
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) {
      return true;
    }
    if (shape[axis] != 1 && strides[axis] != expected) {
      return false;
    }
    expected *= shape[axis];
  }
  return true;
}

void require_alive(const Array& array, const char* name) {
  if (const char* gone = array.block->gone; gone != nullptr) [[unlikely]] {
    throw Failure(Kind::Freed, std::string(name) + ": the array was freed by " + gone +
                                   "; allocate another one");
  }
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

const Array* array_of(nb::handle object) {
  return nb::isinstance<Array>(object) ? nb::inst_ptr<Array>(object) : nullptr;
}

namespace {

// A copy of `name` that is never freed: there are few of them, and other threads may be reading it.
const char* kept(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace

void register_array(nb::module_& module) {
  nb::class_<Array> type(module, "Array", doc("Array"), nb::type_slots(buffer_slots()));
  register_methods(type);
  register_properties(type);
  register_elements(type);
  module.def("wrap", &wrap);
  module.def("mark_freed",
             [](Array& array, const std::string& how) { array.block->gone = kept(how); });
}

}  // namespace weft::python
