// The memory of a view with gaps, for iput and iget: of a weft.Array, or of anything with the
// buffer protocol or DLPack.
//
// Threads: any that is attached to Python; it keeps its object alive, and is released by such a
// thread.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "array.hpp"
#include "memory.hpp"

namespace weft::python {

class StridedMemory {
 public:
  // `what` names the argument: "weft.iput: dest".
  StridedMemory(nanobind::handle object, Memory::Use use, const char* what);
  StridedMemory(const StridedMemory&) = delete;
  StridedMemory& operator=(const StridedMemory&) = delete;
  ~StridedMemory();

  std::byte* address = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  const Dtype* dtype = nullptr;

 private:
  bool take_buffer(nanobind::handle object, Memory::Use use, const char* what);
  void take_dlpack(nanobind::handle object, Memory::Use use, const char* what);

  bool has_buffer_ = false;
  Py_buffer buffer_;
  nanobind::ndarray<nanobind::ro> imported_;
};

}  // namespace weft::python
