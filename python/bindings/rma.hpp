// put, get, signals, waits and atomics, as Python calls them.
//
// Threads: any; the GIL is released while the library works.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

void register_rma(nanobind::module_& module);
void register_strided(nanobind::module_& module);
void register_waits(nanobind::module_& module);
void register_signals(nanobind::module_& module);
void register_lists(nanobind::module_& module);
void register_atomics(nanobind::module_& module);
void register_teams(nanobind::module_& module);

}  // namespace weft::python
