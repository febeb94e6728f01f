// weft.Context: an independent sequence of operations, with its own fence and quiet.
//
// Threads: any, as the functions of weft.h.
#pragma once

#include <weft/weft.h>

#include <nanobind/nanobind.h>

namespace weft::python {

struct Context {
  weft_ctx_t handle = WEFT_CTX_DEFAULT;
  bool is_closed = false;
};

// The library's context; the default one for nullptr. Throws if it is closed.
weft_ctx_t handle_of(const Context* context, const char* name);

void register_context(nanobind::module_& module);

}  // namespace weft::python
