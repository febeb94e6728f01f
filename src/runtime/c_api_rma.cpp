// put, get, strided transfers, signals, fence and quiet: a fast path of a few instructions where the
// peer's memory is mapped, and behind it the checks and rma.
#include "src/runtime/c_api.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"

namespace weft::c_api {
namespace {

Pe pe_of(const Access& access) {
  return Pe(static_cast<std::uint32_t>(access.pe));
}

}  // namespace

int put(weft_context_t context, const Access& dest, const void* source, rma::Blocking blocking) {
  if (const Status status = check(dest); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(
      current()->put(context_of(context), const_cast<void*>(dest.address),
                     {static_cast<const std::byte*>(source), dest.bytes}, pe_of(dest), blocking),
      dest.name);
}

int get(weft_context_t context, void* dest, const Access& source, rma::Blocking blocking) {
  if (const Status status = check(source); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->get(context_of(context), {static_cast<std::byte*>(dest), source.bytes},
                               source.address, pe_of(source), blocking),
                source.name);
}

int atomic(weft_context_t context,
           const Access& word,
           const rma::Atomic& atomic,
           std::uint64_t* result) {
  if (const Status status = check(word); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->atomic(context_of(context), const_cast<void*>(word.address), atomic,
                                  pe_of(word), result),
                word.name);
}

int atomic_nbi(weft_context_t context,
               const Access& word,
               const rma::Atomic& atomic,
               void* result) {
  if (const Status status = check(word); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->atomic_fetch_nbi(context_of(context), const_cast<void*>(word.address),
                                            atomic, pe_of(word), result),
                word.name);
}

int wait(const char* name, const void* word, FunctionRef<bool()> done) {
  rma::Rma& rma = *current();
  const auto describe = [&] {
    return fmt::format("waiting in {} for the word at heap offset {}", name,
                       static_cast<const std::byte*>(word) - rma.heap().user());
  };
  // Nobody says who will write the word, so that any PE's death ends the wait.
  return finish(rma.wait(done, describe, others()), name);
}

namespace {

using rma::Blocking;

// The extent of a strided access; InvalidArgument for strides that OpenSHMEM does not allow either.
Status stride_bytes(const char* name,
                    const weft_stride& stride,
                    ptrdiff_t step,
                    std::size_t& bytes) {
  bytes = 0;
  if (stride.count == 0) {
    return Status::Ok;
  }
  if (stride.dest < 1 || stride.source < 1) {
    report(Status::InvalidArgument, fmt::format("{}: strides {} and {}; they must be at least 1",
                                                name, stride.dest, stride.source));
    return Status::InvalidArgument;
  }
  std::size_t elements = 0;
  if (__builtin_mul_overflow(stride.count - 1, static_cast<std::size_t>(step), &elements) ||
      __builtin_mul_overflow(elements + 1, stride.element_bytes, &bytes)) {
    report(Status::InvalidArgument,
           fmt::format("{}: {} elements with stride {} fit in no heap", name, stride.count, step));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

int iput(
    weft_context_t context, void* dest, const void* source, const weft_stride& stride, int pe) {
  std::size_t bytes = 0;
  Status status = stride_bytes("weft_iput", stride, stride.dest, bytes);
  if (status == Status::Ok) {
    status = check({.name = "weft_iput", .address = dest, .bytes = bytes, .pe = pe});
  }
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t i = 0; i < stride.count && status == Status::Ok; ++i) {
    status = current()->put(context_of(context), to + i * stride.dest * stride.element_bytes,
                            {from + i * stride.source * stride.element_bytes, stride.element_bytes},
                            Pe(static_cast<std::uint32_t>(pe)), Blocking::Yes);
  }
  return status == Status::PeerLost ? finish(status, "weft_iput") : static_cast<int>(status);
}

int iget(
    weft_context_t context, void* dest, const void* source, const weft_stride& stride, int pe) {
  std::size_t bytes = 0;
  Status status = stride_bytes("weft_iget", stride, stride.source, bytes);
  if (status == Status::Ok) {
    status = check({.name = "weft_iget", .address = source, .bytes = bytes, .pe = pe});
  }
  if (status != Status::Ok) {
    return static_cast<int>(status);
  }
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t i = 0; i < stride.count && status == Status::Ok; ++i) {
    status = current()->get(context_of(context),
                            {to + i * stride.dest * stride.element_bytes, stride.element_bytes},
                            from + i * stride.source * stride.element_bytes,
                            Pe(static_cast<std::uint32_t>(pe)), Blocking::No);
  }
  const Status quiet = current()->quiet(context_of(context));  // all elements travel at once
  return finish(status == Status::Ok ? quiet : status, "weft_iget");
}

Status to_signal(const char* name, const weft_signal& signal, rma::Signal& result) {
  result = {.word = signal.word, .value = signal.value};
  switch (signal.operation) {
    case WEFT_SIGNAL_SET:
      result.code = rma::AtomicCode::Set;
      return Status::Ok;
    case WEFT_SIGNAL_ADD:
      result.code = rma::AtomicCode::Add;
      return Status::Ok;
  }
  report(Status::InvalidArgument,
         fmt::format("{}: signal operation {}; use WEFT_SIGNAL_SET or WEFT_SIGNAL_ADD", name,
                     static_cast<int>(signal.operation)));
  return Status::InvalidArgument;
}

Access word_access(const char* name, const weft_signal& signal, int pe) {
  return {.name = name, .address = signal.word, .bytes = 8, .pe = pe, .alignment = 8};
}

int put_signal(weft_context_t context,
               const Access& dest,
               const void* source,
               const weft_signal& signal,
               Blocking blocking) {
  rma::Signal update;
  Status status = check(dest);
  if (status == Status::Ok) {
    status = check(word_access(dest.name, signal, dest.pe));
  }
  if (status == Status::Ok) {
    status = to_signal(dest.name, signal, update);
  }
  if (status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->put_signal(context_of(context), const_cast<void*>(dest.address),
                                      {static_cast<const std::byte*>(source), dest.bytes}, update,
                                      pe_of(dest), blocking),
                dest.name);
}

int signal_post(weft_context_t context, const weft_signal& signal, int pe) {
  rma::Signal update;
  Status status = check(word_access("weft_signal_post", signal, pe));
  if (status == Status::Ok) {
    status = to_signal("weft_signal_post", signal, update);
  }
  if (status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->signal(context_of(context), update, Pe(static_cast<std::uint32_t>(pe))),
                "weft_signal_post");
}

// The fast paths: true if the transfer is done.
inline bool put_mapped(void* dest, const void* source, std::size_t bytes, int pe) {
  const rma::Rma* rma = current();
  void* view = rma == nullptr ? nullptr : rma->mapped(dest, bytes, static_cast<std::uint32_t>(pe));
  if (view == nullptr) [[unlikely]] {
    return false;
  }
  transport::copy_bytes(view, source, bytes);
  return true;
}

inline bool get_mapped(void* dest, const void* source, std::size_t bytes, int pe) {
  const rma::Rma* rma = current();
  const void* view =
      rma == nullptr ? nullptr : rma->mapped(source, bytes, static_cast<std::uint32_t>(pe));
  if (view == nullptr) [[unlikely]] {
    return false;
  }
  transport::copy_bytes(dest, view, bytes);
  return true;
}

template <Status (rma::Rma::*kOrder)(rma::Context&)>
int order(weft_context_t context, const char* name) {
  rma::Rma* rma = current();
  if (rma == nullptr) [[unlikely]] {
    return report_not_initialized(name);
  }
  const Status status = (rma->*kOrder)(context_of(context));
  return status == Status::Ok ? WEFT_OK : finish(status, name);
}

}  // namespace
}  // namespace weft::c_api

using weft::c_api::get_mapped;
using weft::c_api::order;
using weft::c_api::put_mapped;
using weft::rma::Blocking;
using weft::rma::Rma;

int weft_ctx_put(weft_context_t context, void* dest, const void* source, size_t bytes, int pe) {
  return put_mapped(dest, source, bytes, pe)
             ? WEFT_OK
             : weft::c_api::put(context, {"weft_put", dest, bytes, pe}, source, Blocking::Yes);
}

int weft_ctx_put_nbi(weft_context_t context, void* dest, const void* source, size_t bytes, int pe) {
  return put_mapped(dest, source, bytes, pe)
             ? WEFT_OK
             : weft::c_api::put(context, {"weft_put_nbi", dest, bytes, pe}, source, Blocking::No);
}

int weft_ctx_get(weft_context_t context, void* dest, const void* source, size_t bytes, int pe) {
  return get_mapped(dest, source, bytes, pe)
             ? WEFT_OK
             : weft::c_api::get(context, dest, {"weft_get", source, bytes, pe}, Blocking::Yes);
}

int weft_ctx_get_nbi(weft_context_t context, void* dest, const void* source, size_t bytes, int pe) {
  return get_mapped(dest, source, bytes, pe)
             ? WEFT_OK
             : weft::c_api::get(context, dest, {"weft_get_nbi", source, bytes, pe}, Blocking::No);
}

int weft_put(void* dest, const void* source, size_t bytes, int pe) {
  return weft_ctx_put(WEFT_CONTEXT_DEFAULT, dest, source, bytes, pe);
}

int weft_put_nbi(void* dest, const void* source, size_t bytes, int pe) {
  return weft_ctx_put_nbi(WEFT_CONTEXT_DEFAULT, dest, source, bytes, pe);
}

int weft_get(void* dest, const void* source, size_t bytes, int pe) {
  return weft_ctx_get(WEFT_CONTEXT_DEFAULT, dest, source, bytes, pe);
}

int weft_get_nbi(void* dest, const void* source, size_t bytes, int pe) {
  return weft_ctx_get_nbi(WEFT_CONTEXT_DEFAULT, dest, source, bytes, pe);
}

int weft_ctx_iput(
    weft_context_t context, void* dest, const void* source, weft_stride stride, int pe) {
  return weft::c_api::iput(context, dest, source, stride, pe);
}

int weft_iput(void* dest, const void* source, weft_stride stride, int pe) {
  return weft::c_api::iput(WEFT_CONTEXT_DEFAULT, dest, source, stride, pe);
}

int weft_ctx_iget(
    weft_context_t context, void* dest, const void* source, weft_stride stride, int pe) {
  return weft::c_api::iget(context, dest, source, stride, pe);
}

int weft_iget(void* dest, const void* source, weft_stride stride, int pe) {
  return weft::c_api::iget(WEFT_CONTEXT_DEFAULT, dest, source, stride, pe);
}

int weft_ctx_put_signal(weft_context_t context,
                        void* dest,
                        const void* source,
                        size_t bytes,
                        weft_signal signal,
                        int pe) {
  return weft::c_api::put_signal(context, {"weft_put_signal", dest, bytes, pe}, source, signal,
                                 Blocking::Yes);
}

int weft_ctx_put_signal_nbi(weft_context_t context,
                            void* dest,
                            const void* source,
                            size_t bytes,
                            weft_signal signal,
                            int pe) {
  return weft::c_api::put_signal(context, {"weft_put_signal_nbi", dest, bytes, pe}, source, signal,
                                 Blocking::No);
}

int weft_put_signal(void* dest, const void* source, size_t bytes, weft_signal signal, int pe) {
  return weft_ctx_put_signal(WEFT_CONTEXT_DEFAULT, dest, source, bytes, signal, pe);
}

int weft_put_signal_nbi(void* dest, const void* source, size_t bytes, weft_signal signal, int pe) {
  return weft_ctx_put_signal_nbi(WEFT_CONTEXT_DEFAULT, dest, source, bytes, signal, pe);
}

int weft_ctx_signal_post(weft_context_t context, weft_signal signal, int pe) {
  return weft::c_api::signal_post(context, signal, pe);
}

int weft_signal_post(weft_signal signal, int pe) {
  return weft::c_api::signal_post(WEFT_CONTEXT_DEFAULT, signal, pe);
}

uint64_t weft_signal_fetch(const uint64_t* word) {
  return Rma::read_word(word);
}

int weft_fence(void) {
  return order<&Rma::fence>(WEFT_CONTEXT_DEFAULT, "weft_fence");
}

int weft_ctx_fence(weft_context_t context) {
  return order<&Rma::fence>(context, "weft_ctx_fence");
}

int weft_quiet(void) {
  return order<&Rma::quiet>(WEFT_CONTEXT_DEFAULT, "weft_quiet");
}

int weft_ctx_quiet(weft_context_t context) {
  return order<&Rma::quiet>(context, "weft_ctx_quiet");
}
