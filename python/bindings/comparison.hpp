// Words and numbers that waits and atomics take from Python.
//
// Threads: any that is attached to Python.
#pragma once

#include <weft/weft.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

#include "failure.hpp"

namespace weft::python {

// WEFT_GE for ">=". Throws InvalidArgument for a word that is none.
weft_comparison comparison_of(std::string_view text, const char* name);

// `value` as an element of C type T. Throws InvalidArgument if it is none.
template <typename T>
T number_of(nanobind::handle value, const char* name) {
  T number{};
  bool fits = false;
  try {
    fits = nanobind::try_cast(value, number);
  } catch (const std::bad_cast&) {  // a number of Python for which T has no room
    fits = false;
  }
  if (!fits) {
    throw Failure(Kind::InvalidArgument, std::string(name) + ": the value " +
                                             nanobind::cast<std::string>(nanobind::repr(value)) +
                                             " is not one of the element type");
  }
  return number;
}

}  // namespace weft::python
