// weft.Array: a shape and an element type over symmetric memory, or over that of a peer which is
// mapped here.
//
// Threads: any, as the functions of weft.h; an array is not freed while another thread uses it.
// Invariant: `address` lies in the block, and so does every element that shape and strides name.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "block.hpp"
#include "dtype.hpp"

namespace weft::python {

struct Array {
  std::shared_ptr<Block> block;
  std::byte* address = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  const Dtype* dtype = nullptr;

  [[nodiscard]] std::int64_t count() const noexcept;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(count()) * dtype->bytes();
  }

  // Its elements follow each other, in C order.
  [[nodiscard]] bool is_contiguous() const noexcept;
};

// Throws Freed, in the name of a Python function.
void require_alive(const Array& array, const char* name);

// The array that `object` is, or nullptr.
const Array* array_of(nanobind::handle object);

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape);

void register_array(nanobind::module_& module);

}  // namespace weft::python
