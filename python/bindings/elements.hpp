// The numbers in arrays of CPU memory, one by one: int(array), item, tolist, repr and assignment.
// For a few of them; numpy and torch see the same memory for more.
//
// Threads: any that is attached to Python. Other PEs may write the memory meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace weft::python {

struct Array;

// "[0, 1, 2]" for a small array of CPU memory that is not freed, else "".
std::string values_text(const Array& array);

void register_elements(nanobind::class_<Array>& type);

}  // namespace weft::python
