// Shapes as Python gives them, and views of arrays by index, slice and ellipsis.
//
// Threads: any that is attached to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::python {

struct Array;

// (2, 3) out of a tuple of integers, of one integer, or of one tuple. `name` is the Python function
// that asks.
std::vector<std::int64_t> shape_of(nanobind::handle shape, const char* name);
std::string shape_text(const std::vector<std::int64_t>& shape);

// array[key]: a view, never a copy.
Array indexed(const Array& array, nanobind::handle key);

}  // namespace weft::python
