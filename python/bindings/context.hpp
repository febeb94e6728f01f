// weft.Context: an independent sequence of operations, with its own fence and quiet.
//
// Threads: any, as the functions of weft.h.
#pragma once

#include <weft/weft.h>

#include <nanobind/nanobind.h>

#include <atomic>

namespace weft::python {

struct Context {
  weft_ctx_t handle = WEFT_CTX_DEFAULT;
  std::atomic<bool> is_closed = false;  // by the thread that destroys the handle, before it does
};

// The library's context; the default one for nullptr. Throws if it is closed.
weft_ctx_t handle_of(const Context* context, const char* name);

void register_context(nanobind::module_& module);

}  // namespace weft::python
