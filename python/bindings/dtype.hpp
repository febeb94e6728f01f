// The element types of symmetric arrays: a row each, with their names in Python, DLPack, the buffer
// protocol and Weft's reductions.
//
// Threads: any; all of it is constant.
#pragma once

#include <weft/weft.h>

#include <nanobind/ndarray.h>

#include <cstddef>
#include <string_view>

namespace weft::python {

struct Dtype {
  std::string_view name;  // as numpy and torch say it
  nanobind::dlpack::dtype dlpack;
  const char* format;   // of the buffer protocol; nullptr: it has no letter for this type
  weft_type reducible;  // 0: no reduction over it

  [[nodiscard]] std::size_t bytes() const noexcept { return dlpack.bits / 8; }
};

// nullptr if there is none.
const Dtype* find_dtype(std::string_view name);
const Dtype* find_dtype(nanobind::dlpack::dtype dlpack);
// By a letter of the buffer protocol and the size of an item.
const Dtype* find_dtype(const char* format, std::size_t bytes);

// Separated by commas, for error messages.
std::string_view dtype_names();

}  // namespace weft::python
