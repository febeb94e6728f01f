#include "exports.hpp"

#include <string>
#include <vector>

#include "array.hpp"
#include "failure.hpp"

namespace nb = nanobind;

namespace weft::python {
namespace {

// What a Py_buffer of an array needs besides the array: it goes with the view.
struct BufferShape {
  std::shared_ptr<Block> block;
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;  // in bytes
};

void refuse(const char* text) {
  PyErr_SetString(PyExc_BufferError, text);
}

// True if the array has a buffer for a request with these flags; else Python's error is set.
bool has_buffer(const Array& array, int flags) {
  if (array.block->is_freed()) {
    refuse(("the symmetric array was freed by " + std::string(array.block->gone) +
            "; allocate another one")
               .c_str());
  } else if (array.block->device != kHost) {
    refuse(
        "the array is in GPU memory, which has no buffer; use torch.from_dlpack or "
        "cupy.from_dlpack");
  } else if (array.dtype->format == nullptr) {
    refuse(("the buffer protocol has no " + std::string(array.dtype->name) +
            "; use torch.from_dlpack, or allocate the array as uint8 or uint16")
               .c_str());
  } else if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !array.is_contiguous()) {
    refuse("the array is a view with gaps, and the request is for contiguous memory");
  } else {
    return true;
  }
  return false;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const Array& array = *nb::inst_ptr<Array>(self);
  if (!has_buffer(array, flags)) {
    view->obj = nullptr;
    return -1;
  }
  auto* own = new BufferShape{array.block, {array.shape.begin(), array.shape.end()}, {}};
  for (const std::int64_t stride : array.strides) {
    own->strides.push_back(stride * static_cast<Py_ssize_t>(array.dtype->bytes()));
  }
  view->buf = array.address;
  view->obj = self;
  Py_INCREF(self);
  view->len = static_cast<Py_ssize_t>(array.bytes());
  view->itemsize = static_cast<Py_ssize_t>(array.dtype->bytes());
  view->readonly = 0;
  view->ndim = static_cast<int>(array.shape.size());
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(array.dtype->format) : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? own->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? own->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = own;
  ++array.block->exports;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  auto* own = static_cast<BufferShape*>(view->internal);
  --own->block->exports;
  delete own;
}

}  // namespace

nb::object export_of(const std::shared_ptr<Block>& block) {
  auto* kept = new std::shared_ptr<Block>(block);
  ++block->exports;
  return nb::capsule(kept, [](void* pointer) noexcept {
    auto* owned = static_cast<std::shared_ptr<Block>*>(pointer);
    --(*owned)->exports;
    delete owned;
  });
}

const PyType_Slot* buffer_slots() {
  static const PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
      {0, nullptr}};
  return slots;
}

}  // namespace weft::python
