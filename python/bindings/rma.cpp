#include "rma.hpp"

#include <weft/device.h>
#include <weft/weft.h>

#include "agreement.hpp"
#include "context.hpp"
#include "docstrings.hpp"
#include "memory.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

using Transfer = int (*)(weft_ctx_t, void*, const void*, std::size_t, int);
using OnStream = int (*)(void*, const void*, std::size_t, int, weft_stream_t);

// One of put, put_nbi, get and get_nbi.
struct Operation {
  const char* name;
  const char* dest;
  const char* source;
  Transfer on_host;
  OnStream on_stream;
  bool is_put;
};

constexpr Operation kPut{"weft.put",    "weft.put: dest",    "weft.put: source",
                         &weft_ctx_put, &weft_put_on_stream, true};
constexpr Operation kPutNbi{"weft.put_nbi",    "weft.put_nbi: dest", "weft.put_nbi: source",
                            &weft_ctx_put_nbi, &weft_put_on_stream,  true};
constexpr Operation kGet{"weft.get",    "weft.get: dest",    "weft.get: source",
                         &weft_ctx_get, &weft_get_on_stream, false};
constexpr Operation kGetNbi{"weft.get_nbi",    "weft.get_nbi: dest", "weft.get_nbi: source",
                            &weft_ctx_get_nbi, &weft_get_on_stream,  false};

template <const Operation& kOperation>
void transfer(
    nb::handle dest, nb::handle source, int pe, const Context* context, nb::handle stream) {
  constexpr const char* kName = kOperation.name;
  require_ready(kName);
  // The target of a put is another PE's, so what this PE may do with its own does not matter.
  const Memory to(dest, kOperation.is_put ? Memory::Use::Read : Memory::Use::Write,
                  kOperation.dest);
  const Memory from(source, Memory::Use::Read, kOperation.source);
  require_match(to, from, kName);
  int status = WEFT_OK;
  if (to.device() == kHost) {
    refuse_stream(stream, kName);
    const weft_ctx_t handle = handle_of(context, kName);
    const Waiting waiting(kName);
    status = kOperation.on_host(handle, to.address(), from.address(), from.bytes(), pe);
  } else {
    const weft_stream_t queue = stream_of(stream, to.device(), kName);
    const Waiting waiting(kName);
    status = kOperation.on_stream(to.address(), from.address(), from.bytes(), pe, queue);
  }
  check_status(status, kName, kOperation.is_put ? to.address() : from.address());
}

template <const Operation& kOperation>
void define(nb::module_& module, const char* name) {
  module.def(name, &transfer<kOperation>, doc(name), "dest"_a.none(), "source"_a.none(), "pe"_a,
             nb::kw_only(), "context"_a.none() = nb::none(), "stream"_a = nb::none());
}

// fence, quiet: a call on a context.
template <int (*kCall)(weft_ctx_t)>
void order(const Context* context, const char* name) {
  require_ready(name);
  const weft_ctx_t handle = handle_of(context, name);
  run(name, [&] { return kCall(handle); });
}

void quiet(const Context* context, nb::handle stream) {
  if (stream.is_none()) {
    order<&weft_ctx_quiet>(context, "weft.quiet");
    return;
  }
  require_ready("weft.quiet");
  const weft_stream_t queue = stream_of(stream, own_device(), "weft.quiet");
  run("weft.quiet", [&] { return weft_quiet_on_stream(queue); });
}

void barrier_all(nb::handle stream) {
  require_ready("weft.barrier_all");
  Announcement::without_memory(WEFT_TEAM_WORLD, "weft.barrier_all", stream).show({});
  if (stream.is_none()) {
    run("weft.barrier_all", [] { return weft_barrier_all(); });
    return;
  }
  const weft_stream_t queue = stream_of(stream, own_device(), "weft.barrier_all");
  run("weft.barrier_all", [&] { return weft_barrier_all_on_stream(queue); });
}

void sync_all() {
  require_ready("weft.sync_all");
  Announcement::without_memory(WEFT_TEAM_WORLD, "weft.sync_all", nb::none()).show({});
  run("weft.sync_all", [] { return weft_sync_all(); });
}

void register_contexts_methods(nb::class_<Context>& type) {
  type.def("__init__",
           [](Context* self) {
             require_ready("weft.Context");
             new (self) Context;
             check_status(weft_ctx_create(&self->handle), "weft.Context");
           })
      .def("fence", [](const Context& self) { order<&weft_ctx_fence>(&self, "Context.fence"); })
      .def("quiet", [](const Context& self) { order<&weft_ctx_quiet>(&self, "Context.quiet"); })
      .def("close",
           [](Context& self) {
             if (!self.is_closed.exchange(true) && state() == State::Ready) {
               run("Context.close", [&] { return weft_ctx_destroy(self.handle); });
             }
           })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](nb::handle self, const nb::args&) { self.attr("close")(); });
}

}  // namespace

weft_ctx_t handle_of(const Context* context, const char* name) {
  if (context == nullptr) {
    return WEFT_CTX_DEFAULT;
  }
  if (context->is_closed) {
    throw Failure(Kind::InvalidArgument,
                  std::string(name) + ": the context is closed; make another weft.Context()");
  }
  return context->handle;
}

void register_context(nb::module_& module) {
  nb::class_<Context> type(module, "Context", doc("Context"));
  register_contexts_methods(type);
}

void register_rma(nb::module_& module) {
  define<kPut>(module, "put");
  define<kPutNbi>(module, "put_nbi");
  define<kGet>(module, "get");
  define<kGetNbi>(module, "get_nbi");
  module.def(
      "fence", [](const Context* context) { order<&weft_ctx_fence>(context, "weft.fence"); },
      doc("fence"), "context"_a.none() = nb::none());
  module.def("quiet", &quiet, doc("quiet"), "context"_a.none() = nb::none(), nb::kw_only(),
             "stream"_a = nb::none());
  module.def("barrier_all", &barrier_all, doc("barrier_all"), nb::kw_only(),
             "stream"_a = nb::none());
  module.def("sync_all", &sync_all, doc("sync_all"));
}

}  // namespace weft::python
