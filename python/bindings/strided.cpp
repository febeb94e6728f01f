// iput and iget: elements with gaps between them, on either side.
#include "strided.hpp"

#include <weft/weft.h>

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "context.hpp"
#include "docstrings.hpp"
#include "failure.hpp"
#include "rma.hpp"
#include "session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

constexpr int kDlpackCuda = 2;

[[noreturn]] void refuse(Kind kind, const char* what, const std::string& text) {
  throw Failure(kind, std::string(what) + text);
}

[[noreturn]] void refuse_gpu(const char* what) {
  refuse(Kind::WrongDevice, what,
         " is in GPU memory; gather it there into a contiguous array, and put that");
}

}  // namespace

StridedMemory::StridedMemory(nb::handle object, Memory::Use use, const char* what) {
  if (const Array* array = array_of(object)) {
    require_alive(*array, what);
    if (array->block->device != kHost) {
      refuse_gpu(what);
    }
    address = array->address;
    shape = array->shape;
    strides = array->strides;
    dtype = array->dtype;
  } else if (!take_buffer(object, use, what)) {
    take_dlpack(object, use, what);
  }
  if (dtype == nullptr) {
    refuse(Kind::WrongDtype, what,
           " has an element type which Weft does not move; it moves " + std::string(dtype_names()));
  }
  if (std::ranges::any_of(strides, [](std::int64_t stride) { return stride < 0; })) {
    refuse(Kind::InvalidArgument, what, " goes backward; give a view whose strides are positive");
  }
}

StridedMemory::~StridedMemory() {
  if (has_buffer_) {
    PyBuffer_Release(&buffer_);
  }
}

bool StridedMemory::take_buffer(nb::handle object, Memory::Use use, const char* what) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return false;
  }
  const int flags = use == Memory::Use::Write ? PyBUF_FULL : PyBUF_FULL_RO;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) {
    PyErr_Clear();
    if (use == Memory::Use::Read) {
      return false;  // DLPack may have it: bfloat16 of JAX
    }
    refuse(Kind::InvalidArgument, what, " cannot be written to: its memory is read-only");
  }
  has_buffer_ = true;
  dtype = find_dtype(buffer_.format, static_cast<std::size_t>(buffer_.itemsize));
  address = static_cast<std::byte*>(buffer_.buf);
  for (int axis = 0; axis < buffer_.ndim && dtype != nullptr; ++axis) {
    if (buffer_.strides[axis] % buffer_.itemsize != 0) {
      PyBuffer_Release(&buffer_);
      has_buffer_ = false;
      refuse(Kind::NotContiguous, what,
             " has strides that are no multiples of its elements; copy it first");
    }
    shape.push_back(buffer_.shape[axis]);
    strides.push_back(buffer_.strides[axis] / buffer_.itemsize);
  }
  return true;
}

void StridedMemory::take_dlpack(nb::handle object, Memory::Use use, const char* what) {
  if (!nb::hasattr(object, "__dlpack__") || !nb::try_cast(object, imported_, false)) {
    refuse(Kind::WrongDtype, what,
           " is a " + nb::cast<std::string>(nb::type_name(object.type())) +
               "; give a weft.Array, or an array or tensor of numpy, torch or JAX (a tensor that "
               "requires grad: Tensor.detach)");
  }
  if (use == Memory::Use::Write && nb::hasattr(object, "addressable_shards")) {
    refuse(Kind::InvalidArgument, what, " cannot be written to: arrays of JAX are constant");
  }
  if (imported_.device_type() == kDlpackCuda) {
    refuse_gpu(what);
  }
  dtype = find_dtype(imported_.dtype());
  address = static_cast<std::byte*>(imported_.data_handle()) + imported_.byte_offset();
  for (std::size_t axis = 0; axis < imported_.ndim(); ++axis) {
    shape.push_back(static_cast<std::int64_t>(imported_.shape(axis)));
    strides.push_back(imported_.stride(axis));
  }
}

namespace {

using Call = int (*)(weft_ctx_t, void*, const void*, weft_stride, int);

// The context and the PE of a transfer.
struct Peer {
  weft_ctx_t context;
  int pe;
};

// Both sides, whose shapes are equal: the rows of the last axis one after the other, each by one
// call.
class Rows {
 public:
  Rows(const StridedMemory& dest, const StridedMemory& source) : dest_(dest), source_(source) {
    const std::size_t axes = dest.shape.size();
    const auto count = axes == 0 ? 1 : static_cast<std::size_t>(dest.shape.back());
    row_ = {axes == 0 ? 1 : step_of(dest, axes - 1), axes == 0 ? 1 : step_of(source, axes - 1),
            dest.dtype->bytes(), count};
    if (row_.dest == 1 && row_.source == 1) {
      row_ = {1, 1, count * dest.dtype->bytes(), 1};  // one block
    }
  }

  int transfer(Call call, const Peer& peer) const {
    return std::ranges::count(dest_.shape, 0) != 0
               ? WEFT_OK
               : transfer_from(0, dest_.address, source_.address, {call, peer});
  }

 private:
  struct How {
    Call call;
    Peer peer;
  };

  // An axis of one element has any stride.
  static std::int64_t step_of(const StridedMemory& side, std::size_t axis) {
    return side.shape[axis] == 1 ? 1 : side.strides[axis];
  }

  int transfer_from(std::size_t axis, std::byte* to, const std::byte* from, const How& how) const {
    if (axis + 1 >= dest_.shape.size()) {
      return how.call(how.peer.context, to, from, row_, how.peer.pe);
    }
    int status = WEFT_OK;
    for (std::int64_t i = 0; i < dest_.shape[axis] && status == WEFT_OK; ++i) {
      status = transfer_from(axis + 1, to + bytes(dest_, axis) * i, from + bytes(source_, axis) * i,
                             how);
    }
    return status;
  }

  static std::int64_t bytes(const StridedMemory& side, std::size_t axis) {
    return side.strides[axis] * static_cast<std::int64_t>(side.dtype->bytes());
  }

  const StridedMemory& dest_;
  const StridedMemory& source_;
  weft_stride row_{};
};

std::string shape_text(const StridedMemory& memory) {
  std::string text = "(";
  for (const std::int64_t extent : memory.shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  }
  return text + ")";
}

void require_alike(const StridedMemory& dest, const StridedMemory& source, const char* name) {
  if (dest.dtype->dlpack != source.dtype->dlpack) {
    throw Failure(Kind::WrongDtype, std::string(name) + ": dest is of " +
                                        std::string(dest.dtype->name) + " and source of " +
                                        std::string(source.dtype->name) +
                                        "; convert one of them, Weft moves bytes");
  }
  if (dest.shape != source.shape) {
    throw Failure(Kind::WrongShape, std::string(name) + ": dest has the shape " + shape_text(dest) +
                                        " and source " + shape_text(source) +
                                        "; both have the same shape, with strides of their own");
  }
}

// One of iput and iget.
struct StridedOperation {
  const char* name;
  const char* dest;
  const char* source;
  Call call;
  bool is_put;
};

constexpr StridedOperation kIput{"weft.iput", "weft.iput: dest", "weft.iput: source",
                                 &weft_ctx_iput, true};
constexpr StridedOperation kIget{"weft.iget", "weft.iget: dest", "weft.iget: source",
                                 &weft_ctx_iget, false};

template <const StridedOperation& kOperation>
void transfer(nb::handle dest, nb::handle source, int pe, const Context* context) {
  constexpr const char* kName = kOperation.name;
  require_ready(kName);
  const StridedMemory to(dest, kOperation.is_put ? Memory::Use::Read : Memory::Use::Write,
                         kOperation.dest);
  const StridedMemory from(source, Memory::Use::Read, kOperation.source);
  require_alike(to, from, kName);
  const Peer peer{handle_of(context, kName), pe};
  int status = WEFT_OK;
  {
    const Waiting waiting(kName);
    status = Rows(to, from).transfer(kOperation.call, peer);
  }
  check_status(status, kName, kOperation.is_put ? to.address : from.address);
}

template <const StridedOperation& kOperation>
void define(nb::module_& module, const char* name) {
  module.def(name, &transfer<kOperation>, doc(name), "dest"_a.none(), "source"_a.none(), "pe"_a,
             nb::kw_only(), "context"_a.none() = nb::none());
}

}  // namespace

void register_strided(nb::module_& module) {
  define<kIput>(module, "iput");
  define<kIget>(module, "iget");
}

}  // namespace weft::python
