// Signals as Python gives them.
#pragma once

#include <weft/weft.h>

#include <nanobind/nanobind.h>

#include "memory.hpp"

namespace weft::python {

// `update` is (value, operation). Throws unless the word is one element of uint64.
weft_signal signal_of(const Memory& word, const nanobind::tuple& update, const char* name);

}  // namespace weft::python
