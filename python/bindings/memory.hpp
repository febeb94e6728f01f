// The memory that an argument of put, get and the collectives means: of a weft.Array, a torch
// tensor, or anything with the buffer protocol (numpy) or DLPack (CuPy, JAX).
//
// Threads: any that is attached to Python; a Memory keeps its object alive, and is released by such
// a thread.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>

#include "array.hpp"

namespace weft::python {

class Memory {
 public:
  enum class Use { Read, Write };

  // `what` names the argument: "weft.put: dest".
  Memory(nanobind::handle object, Use use, const char* what);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  [[nodiscard]] void* address() const noexcept { return address_; }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * dtype_->bytes(); }

  [[nodiscard]] const Dtype& dtype() const noexcept { return *dtype_; }

  // kHost, or the number of a CUDA device.
  [[nodiscard]] int device() const noexcept { return device_; }

 private:
  void take(const Array& array, const char* what);
  bool take_buffer(nanobind::handle object, Use use, const char* what);
  bool take_exchange(nanobind::handle object, Use use, const char* what);
  bool take_tensor(nanobind::handle object, const char* what);
  bool take_dlpack(nanobind::handle object, Use use, const char* what);

  void* address_ = nullptr;
  std::size_t count_ = 0;
  const Dtype* dtype_ = nullptr;
  int device_ = kHost;
  bool has_buffer_ = false;
  Py_buffer buffer_;
  nanobind::ndarray<nanobind::ro> imported_;
};

// Throws unless both have the same element type, number of elements and device.
void require_match(const Memory& dest, const Memory& source, const char* name);

}  // namespace weft::python
