// put_signal, signal_post and the waits for signals.
#include "signals.hpp"

#include <weft/device.h>
#include <weft/weft.h>

#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "comparison.hpp"
#include "context.hpp"
#include "docstrings.hpp"
#include "memory.hpp"
#include "rma.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {

weft_comparison comparison_of(std::string_view text, const char* name) {
  constexpr std::pair<std::string_view, weft_comparison> kComparisons[] = {
      {"==", WEFT_EQ}, {"!=", WEFT_NE}, {">", WEFT_GT},
      {">=", WEFT_GE}, {"<", WEFT_LT},  {"<=", WEFT_LE}};
  for (const auto& [word, comparison] : kComparisons) {
    if (word == text) {
      return comparison;
    }
  }
  throw Failure(Kind::InvalidArgument, std::string(name) + ": the comparison is '" +
                                           std::string(text) +
                                           "'; it is one of ==, !=, >, >=, <, <=");
}

namespace {

weft_signal_operation operation_of(std::string_view text, const char* name) {
  if (text == "set") {
    return WEFT_SIGNAL_SET;
  }
  if (text == "add") {
    return WEFT_SIGNAL_ADD;
  }
  throw Failure(Kind::InvalidArgument, std::string(name) + ": the operation is '" +
                                           std::string(text) + "'; it is 'set' or 'add'");
}

// The one word that a signal is.
std::uint64_t* word_of(const Memory& memory, const char* name) {
  if (memory.dtype().name != "uint64" || memory.count() != 1) {
    throw Failure(memory.count() == 1 ? Kind::WrongDtype : Kind::WrongShape,
                  std::string(name) + ": a signal is one element of uint64, and this is " +
                      std::to_string(memory.count()) + " of " + std::string(memory.dtype().name) +
                      "; make signals with weft.zeros(n, 'uint64') and give one: signals[i]");
  }
  return static_cast<std::uint64_t*>(memory.address());
}

}  // namespace

weft_signal signal_of(const Memory& word, const nb::tuple& update, const char* name) {
  return {word_of(word, name), nb::cast<std::uint64_t>(update[0]),
          operation_of(nb::cast<std::string_view>(update[1]), name)};
}

namespace {

using PutSignal = int (*)(weft_ctx_t, void*, const void*, std::size_t, weft_signal, int);

template <PutSignal kCall>
void put_signal(nb::handle dest,
                nb::handle source,
                nb::handle signal,
                const nb::tuple& update,
                int pe,
                const nb::tuple& where) {
  constexpr const char* kName = "weft.put_signal";
  require_ready(kName);
  const Memory to(dest, Memory::Use::Read, "weft.put_signal: dest");
  const Memory from(source, Memory::Use::Read, "weft.put_signal: source");
  const Memory word(signal, Memory::Use::Read, "weft.put_signal: signal");
  require_match(to, from, kName);
  if (word.device() != to.device()) {
    throw Failure(Kind::WrongDevice,
                  "weft.put_signal: the signal is not where dest is; make both on one device");
  }
  const weft_signal change = signal_of(word, update, kName);
  const nb::handle stream = where[1];
  int status = WEFT_OK;
  if (to.device() == kHost) {
    refuse_stream(stream, kName);
    const weft_ctx_t context = handle_of(nb::cast<const Context*>(where[0]), kName);
    const Waiting waiting(kName);
    status = kCall(context, to.address(), from.address(), from.bytes(), change, pe);
  } else {
    const weft_stream_t queue = stream_of(stream, to.device(), kName);
    const Waiting waiting(kName);
    status =
        weft_put_signal_on_stream(to.address(), from.address(), from.bytes(), change, pe, queue);
  }
  check_status(status, kName, to.address());
}

void signal_post(nb::handle signal, const nb::tuple& update, int pe, const nb::tuple& where) {
  constexpr const char* kName = "weft.signal_post";
  require_ready(kName);
  const Memory word(signal, Memory::Use::Read, "weft.signal_post: signal");
  const weft_signal change = signal_of(word, update, kName);
  const nb::handle stream = where[1];
  int status = WEFT_OK;
  if (word.device() == kHost) {
    refuse_stream(stream, kName);
    const weft_ctx_t context = handle_of(nb::cast<const Context*>(where[0]), kName);
    const Waiting waiting(kName);
    status = weft_ctx_signal_post(context, change, pe);
  } else {
    const weft_stream_t queue = stream_of(stream, word.device(), kName);
    status = weft_signal_on_stream(change, pe, queue);
  }
  check_status(status, kName, word.address());
}

std::uint64_t signal_wait_until(nb::handle signal,
                                std::string_view comparison,
                                std::uint64_t value,
                                nb::handle stream) {
  constexpr const char* kName = "weft.signal_wait_until";
  require_ready(kName);
  const Memory memory(signal, Memory::Use::Read, "weft.signal_wait_until: signal");
  std::uint64_t* word = word_of(memory, kName);
  const weft_comparison operation = comparison_of(comparison, kName);
  if (memory.device() != kHost) {
    const weft_stream_t queue = stream_of(stream, memory.device(), kName);
    check_status(weft_signal_wait_until_on_stream(word, operation, value, queue), kName, word);
    return value;
  }
  refuse_stream(stream, kName);
  std::uint64_t seen = 0;
  int status = WEFT_OK;
  {
    const Waiting waiting(kName);
    status = weft_signal_wait_until(word, operation, value, &seen);
  }
  check_status(status, kName, word);
  return seen;
}

std::uint64_t signal_fetch(nb::handle signal) {
  constexpr const char* kName = "weft.signal_fetch";
  require_ready(kName);
  const Memory memory(signal, Memory::Use::Read, "weft.signal_fetch: signal");
  const std::uint64_t* word = word_of(memory, kName);
  if (memory.device() != kHost) {
    throw Failure(Kind::WrongDevice,
                  "weft.signal_fetch: the signal is in GPU memory; wait for it on a stream with "
                  "weft.signal_wait_until");
  }
  const std::uint64_t seen = weft_signal_fetch(word);
  check_last_error(kName);
  return seen;
}

}  // namespace

void register_signals(nb::module_& module) {
  module.def("put_signal", &put_signal<&weft_ctx_put_signal>, nb::arg().none(), nb::arg().none(),
             nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  module.def("put_signal_nbi", &put_signal<&weft_ctx_put_signal_nbi>, nb::arg().none(),
             nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  module.def("signal_post", &signal_post, nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  module.def("signal_wait_until", &signal_wait_until, doc("signal_wait_until"), "signal"_a.none(),
             "comparison"_a, "value"_a, nb::kw_only(), "stream"_a = nb::none());
  module.def("signal_fetch", &signal_fetch, doc("signal_fetch"), "signal"_a.none());
}

}  // namespace weft::python
