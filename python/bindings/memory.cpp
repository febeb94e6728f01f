#include "memory.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>

#include "exchange.hpp"
#include "failure.hpp"

namespace nb = nanobind;

namespace weft::python {
namespace {

constexpr int kDlpackHost = 1;
constexpr int kDlpackCuda = 2;
constexpr int kDlpackPinned = 3;  // host memory that CUDA has pinned

[[noreturn]] void refuse_gaps(const char* what) {
  throw Failure(Kind::NotContiguous,
                std::string(what) +
                    " is a view with gaps; give a contiguous one, or copy it first "
                    "(numpy.ascontiguousarray, Tensor.contiguous)");
}

[[noreturn]] void refuse_dtype(const char* what, const std::string& found) {
  throw Failure(Kind::WrongDtype, std::string(what) + " has the element type " + found +
                                      ", which Weft does not move; it moves " +
                                      std::string(dtype_names()));
}

// torch.dtype objects live as long as torch, so that their addresses tell them.
const Dtype* dtype_of_torch(nb::handle dtype, const char* what) {
  static auto* const known = new std::unordered_map<PyObject*, const Dtype*>;
  static nb::ft_mutex mutex;  // where Python has no GIL
  const nb::ft_lock_guard lock(mutex);
  if (const auto found = known->find(dtype.ptr()); found != known->end()) {
    return found->second;
  }
  const auto text = nb::cast<std::string>(nb::str(dtype));
  const Dtype* result = find_dtype(std::string_view(text).substr(text.find('.') + 1));
  if (result == nullptr) {
    refuse_dtype(what, text);
  }
  dtype.inc_ref();
  known->emplace(dtype.ptr(), result);
  return result;
}

std::string place(int device) {
  return device == kHost ? "in CPU memory" : "on cuda:" + std::to_string(device);
}

}  // namespace

Memory::Memory(nb::handle object, Use use, const char* what) {
  if (const Array* array = array_of(object)) {
    take(*array, what);
    return;
  }
  if (!take_buffer(object, use, what) && !take_exchange(object, use, what) &&
      !take_tensor(object, what) && !take_dlpack(object, use, what)) {
    throw Failure(Kind::WrongDtype,
                  std::string(what) + " is a " +
                      nb::cast<std::string>(nb::type_name(object.type())) +
                      "; give a weft.Array, or an array or tensor of numpy, torch, CuPy or JAX");
  }
}

Memory::~Memory() {
  if (has_buffer_) {
    PyBuffer_Release(&buffer_);
  }
}

void Memory::take(const Array& array, const char* what) {
  require_alive(array, what);
  if (!array.is_contiguous()) {
    refuse_gaps(what);
  }
  address_ = array.address;
  count_ = static_cast<std::size_t>(array.count());
  dtype_ = array.dtype;
  device_ = array.block->device;
}

bool Memory::take_buffer(nb::handle object, Use use, const char* what) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return false;
  }
  const int flags = use == Use::Write ? PyBUF_FULL : PyBUF_FULL_RO;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) {
    PyErr_Clear();
    if (nb::hasattr(object, "__cuda_array_interface__")) {
      return false;  // CuPy's arrays have a buffer that only says that it cannot be taken
    }
    if (use == Use::Read && take_dlpack(object, use, what)) {
      return true;  // JAX's arrays of types for which the buffer protocol has no letter
    }
    throw Failure(
        Kind::InvalidArgument,
        std::string(what) + (use == Use::Write ? " cannot be written to: its memory is read-only"
                                               : " does not show its memory"));
  }
  has_buffer_ = true;
  if (PyBuffer_IsContiguous(&buffer_, 'C') == 0) {
    PyBuffer_Release(&buffer_);
    refuse_gaps(what);
  }
  dtype_ = find_dtype(buffer_.format, static_cast<std::size_t>(buffer_.itemsize));
  if (dtype_ == nullptr) {
    const std::string format = buffer_.format;
    PyBuffer_Release(&buffer_);
    refuse_dtype(what, "'" + format + "'");
  }
  address_ = buffer_.buf;
  count_ = static_cast<std::size_t>(buffer_.len) / dtype_->bytes();
  return true;
}

// What is neither of a CPU nor of CUDA, and what has no memory, is left to the next ways, which say
// so.
bool Memory::take_exchange(nb::handle object, Use use, const char* what) {
  if (use == Use::Write && !nb::hasattr(object, "data_ptr")) {
    return false;  // it may be constant, which the table does not tell
  }
  const std::optional<Exchanged> tensor = exchange(object);
  if (!tensor) {
    return false;
  }
  const bool is_cuda = tensor->device.device_type == kDlpackCuda;
  if (!is_cuda && tensor->device.device_type != kDlpackHost &&
      tensor->device.device_type != kDlpackPinned) {
    return false;
  }
  const std::size_t count = tensor->count();
  const Dtype* dtype = find_dtype(tensor->dtype);
  if (dtype == nullptr || (tensor->data == nullptr && count != 0)) {
    return false;
  }
  if (!tensor->is_contiguous()) {
    refuse_gaps(what);
  }
  address_ = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  count_ = count;
  dtype_ = dtype;
  device_ = is_cuda ? tensor->device.device_id : kHost;
  return true;
}

// By its methods: faster than DLPack's own, and a tensor that requires grad has an address too.
bool Memory::take_tensor(nb::handle object, const char* what) {
  const nb::object address = nb::getattr(object, "data_ptr", nb::none());
  if (address.is_none()) {
    return false;
  }
  if (!nb::cast<bool>(object.attr("is_contiguous")())) {
    refuse_gaps(what);
  }
  address_ = reinterpret_cast<void*>(
      nb::cast<std::uintptr_t>(address()));  // NOLINT(performance-no-int-to-ptr)
  count_ = nb::cast<std::size_t>(object.attr("numel")());
  dtype_ = dtype_of_torch(object.attr("dtype"), what);
  if (nb::cast<bool>(object.attr("is_cuda"))) {
    device_ = nb::cast<int>(object.attr("get_device")());
  } else if (!nb::cast<bool>(object.attr("is_cpu"))) {
    const nb::object device = object.attr("device");
    throw Failure(Kind::WrongDevice, std::string(what) + " is on the device " +
                                         nb::cast<std::string>(nb::str(nb::handle(device))) +
                                         "; Weft moves memory of CPUs and of CUDA devices");
  }
  return true;
}

bool Memory::take_dlpack(nb::handle object, Use use, const char* what) {
  if (!nb::hasattr(object, "__dlpack__") || !nb::try_cast(object, imported_, false)) {
    return false;
  }
  if (use == Use::Write && nb::hasattr(object, "at") && nb::hasattr(object, "addressable_shards")) {
    throw Failure(Kind::InvalidArgument,
                  std::string(what) + " cannot be written to: arrays of JAX are constant");
  }
  dtype_ = find_dtype(imported_.dtype());
  if (dtype_ == nullptr) {
    refuse_dtype(what, "of DLPack's code " + std::to_string(imported_.dtype().code));
  }
  std::int64_t expected = 1;
  for (std::size_t axis = imported_.ndim(); axis-- > 0;) {
    if (imported_.shape(axis) != 1 && imported_.stride(axis) != expected) {
      refuse_gaps(what);
    }
    expected *= static_cast<std::int64_t>(imported_.shape(axis));
  }
  address_ = static_cast<std::byte*>(imported_.data_handle()) + imported_.byte_offset();
  count_ = imported_.size();
  device_ = imported_.device_type() == kDlpackCuda ? imported_.device_id() : kHost;
  return true;
}

void require_match(const Memory& dest, const Memory& source, const char* name) {
  if (dest.dtype().dlpack != source.dtype().dlpack) [[unlikely]] {
    throw Failure(Kind::WrongDtype, std::string(name) + ": dest is of " +
                                        std::string(dest.dtype().name) + " and source of " +
                                        std::string(source.dtype().name) +
                                        "; convert one of them, Weft moves bytes");
  }
  if (dest.count() != source.count()) [[unlikely]] {
    throw Failure(Kind::WrongShape, std::string(name) + ": dest has " +
                                        std::to_string(dest.count()) + " elements and source " +
                                        std::to_string(source.count()) + "; slice the larger one");
  }
  if (dest.device() != source.device()) [[unlikely]] {
    throw Failure(Kind::WrongDevice, std::string(name) + ": dest is " + place(dest.device()) +
                                         " and source " + place(source.device()) +
                                         "; copy one of them to the other's device first");
  }
}

}  // namespace weft::python
