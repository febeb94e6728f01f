// The slow path of put, get, strided transfers, signals, fence and quiet (fast path:
// fast_path.hpp): checks, then rma.
#include "src/api/fast_path.hpp"

namespace weft::api {
namespace {

using rma::Blocking;

Pe pe_of(const Access& access) {
  return Pe(world_pe(access.context, access.pe));
}

// Both sides of a transfer.
Status check_transfer(const Access& access, const void* local, heap::Place& place) {
  const Status status = check(access, &place);
  return status == Status::Ok ? check_local(access, local) : status;
}

}  // namespace

int put(const Access& dest, const void* source, Blocking blocking) {
  heap::Place place;
  if (const Status status = check_transfer(dest, source, place); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(
      current()->put(context_of(dest.context), place,
                     {static_cast<const std::byte*>(source), dest.bytes}, pe_of(dest), blocking),
      dest.name);
}

int get(void* dest, const Access& source, Blocking blocking) {
  heap::Place place;
  if (const Status status = check_transfer(source, dest, place); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(
      current()->get(context_of(source.context), {static_cast<std::byte*>(dest), source.bytes},
                     place, pe_of(source), blocking),
      source.name);
}

int atomic(const Access& word, const rma::Atomic& atomic, std::uint64_t* result) {
  heap::Place place;
  if (const Status status = check(word, &place); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->atomic(context_of(word.context), place, atomic, pe_of(word), result),
                word.name);
}

int atomic_nbi(const Access& word, const rma::Atomic& atomic, void* result) {
  heap::Place place;
  Status status = check(word, &place);
  status =
      status == Status::Ok ? check_given(word.name, "the place of the old value", result) : status;
  if (status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(
      current()->atomic_fetch_nbi(context_of(word.context), place, atomic, pe_of(word), result),
      word.name);
}

int wait(const char* name, const WaitedWords& words, FunctionRef<bool()> done) {
  rma::Rma& rma = *current();
  const auto* first = static_cast<const std::byte*>(words.first);
  const auto describe = [&] {
    return fmt::format("waiting in {} for the word at heap offset {}", name,
                       first - rma.heap().user());
  };
  const auto places = [&] {
    AwaitedWords awaited;
    const Pe me = runtime().pe();
    for (std::size_t i = 0; i < std::min<std::size_t>(words.count, AwaitedWords::kCountMax + 1);
         ++i) {
      awaited.add(rma.doorbells().place_of(first + i * words.element_bytes, me));
    }
    return awaited;
  };
  // The writer of the word is unknown, so the death of any PE ends the wait.
  return finish(rma.waiter().wait(done, describe, others(), places), name);
}

namespace {

// The extent of a strided access; InvalidArgument for strides that OpenSHMEM does not allow either.
Status stride_bytes(const char* name,
                    const BlockStride& blocks,
                    ptrdiff_t step,
                    std::size_t& bytes) {
  const weft_stride& stride = blocks.stride;
  bytes = 0;
  if (stride.count == 0 || blocks.block == 0) {
    return Status::Ok;
  }
  const auto is_short = [&](ptrdiff_t one) {
    return one < 1 || static_cast<std::size_t>(one) < blocks.block;
  };
  if (is_short(stride.dest) || is_short(stride.source)) {
    report(Status::InvalidArgument, fmt::format("{}: strides {} and {}; they must be at least {}",
                                                name, stride.dest, stride.source, blocks.block));
    return Status::InvalidArgument;
  }
  std::size_t elements = 0;
  if (__builtin_mul_overflow(stride.count - 1, static_cast<std::size_t>(step), &elements) ||
      __builtin_add_overflow(elements, blocks.block, &elements) ||
      __builtin_mul_overflow(elements, stride.element_bytes, &bytes)) {
    report(Status::InvalidArgument,
           fmt::format("{}: {} elements with stride {} do not fit in any heap", name, stride.count,
                       step));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

// The symmetric side of a strided access, with its stride, and the other side.
struct StridedSides {
  ptrdiff_t step;
  const void* local;
};

Status check_strided(Access& access,
                     const BlockStride& blocks,
                     const StridedSides& sides,
                     heap::Place& place) {
  Status status = stride_bytes(access.name, blocks, sides.step, access.bytes);
  status = status == Status::Ok ? check(access, &place) : status;
  const bool needs_local = status == Status::Ok && access.bytes > 0 && check_level() > 0;
  return needs_local ? check_given(access.name, "the local address", sides.local) : status;
}

template <Status (rma::Rma::*kOrder)(rma::Context&)>
int order(const Caller& caller) {
  rma::Rma* rma = current();
  if (rma == nullptr) [[unlikely]] {
    return report_not_initialized(caller.name);
  }
  if (caller.context != WEFT_CTX_DEFAULT) {
    if (const Status status = check_context(caller); status != Status::Ok) {
      return static_cast<int>(status);
    }
  }
  const Status status = (rma->*kOrder)(context_of(caller.context));
  return status == Status::Ok ? WEFT_OK : finish(status, caller.name);
}

}  // namespace

// Small blocks are copied by the transport and are in flight when put returns. Larger blocks are
// posted all at once and awaited together, so that they overlap.
int ibput(const Caller& caller, void* dest, const void* source, const BlockStride& blocks, int pe) {
  Access access{
      .name = caller.name, .address = dest, .bytes = 0, .pe = pe, .context = caller.context};
  const weft_stride& stride = blocks.stride;
  heap::Place place;
  Status status = check_strided(access, blocks, {stride.dest, source}, place);
  if (status != Status::Ok || access.bytes == 0) {
    return static_cast<int>(status);
  }
  rma::Context& context = context_of(caller.context);
  const std::size_t bytes = blocks.block * stride.element_bytes;
  const bool is_copied = bytes <= rma::RemoteOperations::kCopiedBytesMax;
  for (std::size_t i = 0; i < stride.count && status == Status::Ok; ++i) {
    const std::byte* block =
        static_cast<const std::byte*>(source) + i * stride.source * stride.element_bytes;
    status =
        current()->put(context, place.after(i * stride.dest * stride.element_bytes), {block, bytes},
                       pe_of(access), is_copied ? Blocking::Yes : Blocking::No);
  }
  const Status quiet = is_copied ? Status::Ok : current()->quiet(context);
  return finish(status == Status::Ok ? quiet : status, caller.name);
}

int ibget(const Caller& caller, void* dest, const void* source, const BlockStride& blocks, int pe) {
  Access access{
      .name = caller.name, .address = source, .bytes = 0, .pe = pe, .context = caller.context};
  const weft_stride& stride = blocks.stride;
  heap::Place place;
  Status status = check_strided(access, blocks, {stride.source, dest}, place);
  if (status != Status::Ok || access.bytes == 0) {
    return static_cast<int>(status);
  }
  rma::Context& context = context_of(caller.context);
  const std::size_t bytes = blocks.block * stride.element_bytes;
  for (std::size_t i = 0; i < stride.count && status == Status::Ok; ++i) {
    std::byte* block = static_cast<std::byte*>(dest) + i * stride.dest * stride.element_bytes;
    status = current()->get(context, {block, bytes},
                            place.after(i * stride.source * stride.element_bytes), pe_of(access),
                            Blocking::No);
  }
  // All blocks are in flight at once.
  const Status quiet = current()->quiet(context);
  return finish(status == Status::Ok ? quiet : status, caller.name);
}

int iput(const Caller& caller, void* dest, const void* source, const weft_stride& stride, int pe) {
  return ibput(caller, dest, source, {stride, 1}, pe);
}

int iget(const Caller& caller, void* dest, const void* source, const weft_stride& stride, int pe) {
  return ibget(caller, dest, source, {stride, 1}, pe);
}

int put_signal(const Access& dest,
               const void* source,
               const weft_signal& signal,
               Blocking blocking) {
  heap::Place place;
  rma::Signal update;
  Status status = check_transfer(dest, source, place);
  if (status == Status::Ok) {
    status = check_signal(dest, signal, update);
  }
  if (status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->put_signal(context_of(dest.context), place,
                                      {static_cast<const std::byte*>(source), dest.bytes}, update,
                                      pe_of(dest), blocking),
                dest.name);
}

int signal_post(const Caller& caller, const weft_signal& signal, int pe) {
  const Access target{
      .name = caller.name, .address = nullptr, .bytes = 0, .pe = pe, .context = caller.context};
  rma::Signal update;
  if (const Status status = check_signal(target, signal, update); status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(current()->signal(context_of(caller.context), update, pe_of(target)), caller.name);
}

int fence(const Caller& caller) {
  return order<&rma::Rma::fence>(caller);
}

int quiet(const Caller& caller) {
  return order<&rma::Rma::quiet>(caller);
}

int pe_quiet(const Caller& caller, std::span<const int> pes) {
  Access access{
      .name = caller.name, .address = nullptr, .bytes = 0, .pe = 0, .context = caller.context};
  for (const int pe : pes) {
    access.pe = pe;
    if (const Status status = check(access); status != Status::Ok) {
      return static_cast<int>(status);
    }
  }
  Status result = Status::Ok;
  for (std::size_t i = 0; i < pes.size(); ++i) {
    access.pe = pes[i];
    const Status status = current()->quiet(context_of(caller.context), pe_of(access));
    result = status != Status::Ok ? status : result;
  }
  return finish(result, caller.name);
}

}  // namespace weft::api

using weft::rma::Blocking;

namespace api = weft::api;
namespace typed = weft::api::typed;

int weft_ctx_put(weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe) {
  return typed::put_bytes<Blocking::Yes>({"weft_ctx_put", context}, dest, source, bytes, pe);
}

int weft_put(void* dest, const void* source, size_t bytes, int pe) {
  return typed::put_bytes<Blocking::Yes>({"weft_put"}, dest, source, bytes, pe);
}

int weft_ctx_put_nbi(weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe) {
  return typed::put_bytes<Blocking::No>({"weft_ctx_put_nbi", context}, dest, source, bytes, pe);
}

int weft_put_nbi(void* dest, const void* source, size_t bytes, int pe) {
  return typed::put_bytes<Blocking::No>({"weft_put_nbi"}, dest, source, bytes, pe);
}

int weft_ctx_get(weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe) {
  return typed::get_bytes<Blocking::Yes>({"weft_ctx_get", context}, dest, source, bytes, pe);
}

int weft_get(void* dest, const void* source, size_t bytes, int pe) {
  return typed::get_bytes<Blocking::Yes>({"weft_get"}, dest, source, bytes, pe);
}

int weft_ctx_get_nbi(weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe) {
  return typed::get_bytes<Blocking::No>({"weft_ctx_get_nbi", context}, dest, source, bytes, pe);
}

int weft_get_nbi(void* dest, const void* source, size_t bytes, int pe) {
  return typed::get_bytes<Blocking::No>({"weft_get_nbi"}, dest, source, bytes, pe);
}

int weft_ctx_iput(weft_ctx_t context, void* dest, const void* source, weft_stride stride, int pe) {
  return api::iput({"weft_ctx_iput", context}, dest, source, stride, pe);
}

int weft_iput(void* dest, const void* source, weft_stride stride, int pe) {
  return api::iput({"weft_iput"}, dest, source, stride, pe);
}

int weft_ctx_iget(weft_ctx_t context, void* dest, const void* source, weft_stride stride, int pe) {
  return api::iget({"weft_ctx_iget", context}, dest, source, stride, pe);
}

int weft_iget(void* dest, const void* source, weft_stride stride, int pe) {
  return api::iget({"weft_iget"}, dest, source, stride, pe);
}

int weft_ctx_put_signal(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, weft_signal signal, int pe) {
  return typed::put_signal_bytes<Blocking::Yes>({"weft_ctx_put_signal", context}, {dest, bytes, pe},
                                                source, signal);
}

int weft_put_signal(void* dest, const void* source, size_t bytes, weft_signal signal, int pe) {
  return typed::put_signal_bytes<Blocking::Yes>({"weft_put_signal"}, {dest, bytes, pe}, source,
                                                signal);
}

int weft_ctx_put_signal_nbi(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, weft_signal signal, int pe) {
  return typed::put_signal_bytes<Blocking::No>({"weft_ctx_put_signal_nbi", context},
                                               {dest, bytes, pe}, source, signal);
}

int weft_put_signal_nbi(void* dest, const void* source, size_t bytes, weft_signal signal, int pe) {
  return typed::put_signal_bytes<Blocking::No>({"weft_put_signal_nbi"}, {dest, bytes, pe}, source,
                                               signal);
}

int weft_ctx_signal_post(weft_ctx_t context, weft_signal signal, int pe) {
  return api::signal_post({"weft_ctx_signal_post", context}, signal, pe);
}

int weft_signal_post(weft_signal signal, int pe) {
  return api::signal_post({"weft_signal_post"}, signal, pe);
}

uint64_t weft_signal_fetch(const uint64_t* word) {
  if (api::check_given("weft_signal_fetch", "the word", word) != weft::Status::Ok) [[unlikely]] {
    return 0;
  }
  return weft::rma::load_word(word);
}

int weft_fence(void) {
  return api::fence({"weft_fence"});
}

int weft_ctx_fence(weft_ctx_t context) {
  return api::fence({"weft_ctx_fence", context});
}

int weft_quiet(void) {
  return api::quiet({"weft_quiet"});
}

int weft_ctx_quiet(weft_ctx_t context) {
  return api::quiet({"weft_ctx_quiet", context});
}
