// The module's part for weft.moe: the types MoeExchange and MoePlan. Both are handles of
// weft/moe.h; the package moe/python owns them, and closes exchanges, which is collective.
//
// Threads: one at a time calls the methods of one exchange; the GIL is released while the library
// works.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

void register_moe(nanobind::module_& module);

}  // namespace weft::python
