// Waits for several words of this PE that others write: all of them, any one, or those that are
// there.
#include <weft/typed.h>
#include <weft/weft.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comparison.hpp"
#include "docstrings.hpp"
#include "memory.hpp"
#include "rma.hpp"
#include "session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

template <typename T>
struct Calls {
  int (*all)(T*, std::size_t, const int*, weft_comparison, T);
  std::size_t (*any)(T*, std::size_t, const int*, weft_comparison, T);
  std::size_t (*some)(T*, std::size_t, std::size_t*, const int*, weft_comparison, T);
};

// What a wait is for: some words that this PE's memory has in a row.
struct Words {
  Words(nb::handle words, std::string_view text, nb::handle done_of_user, const char* call)
      : name(call),
        memory((require_ready(call), words), Memory::Use::Read, call),
        comparison(comparison_of(text, call)) {
    if (memory.device() != kHost) {
      throw Failure(Kind::WrongDevice,
                    std::string(name) +
                        ": the words are in GPU memory; wait for each on a stream with "
                        "weft.signal_wait_until");
    }
    if (done_of_user.is_none()) {
      return;
    }
    for (const nb::handle one : nb::iter(done_of_user)) {
      done.push_back(PyObject_IsTrue(one.ptr()));
    }
    if (done.size() != memory.count()) {
      throw Failure(Kind::WrongShape, std::string(name) + ": done has " +
                                          std::to_string(done.size()) + " elements for " +
                                          std::to_string(memory.count()) + " words");
    }
  }

  [[nodiscard]] const int* status() const { return done.empty() ? nullptr : done.data(); }

  const char* name;
  Memory memory;
  weft_comparison comparison;
  std::vector<int> done;
};

// Runs call(calls, address, value) with the functions for the words' type, without the GIL; throws
// its error.
template <typename Call>
void wait(const Words& words, nb::handle value, Call&& call) {
  const auto with = [&]<typename T>(const Calls<T>& calls) {
    const T number = number_of<T>(value, words.name);
    {
      const Waiting waiting(words.name);
      call(calls, static_cast<T*>(words.memory.address()), number);
    }
    check_status(weft_take_error(), words.name, words.memory.address());
  };
  const std::string_view type = words.memory.dtype().name;
  if (type == "uint64") {
    with(Calls<std::uint64_t>{&weft_uint64_wait_until_all, &weft_uint64_wait_until_any,
                              &weft_uint64_wait_until_some});
  } else if (type == "int64") {
    with(Calls<std::int64_t>{&weft_int64_wait_until_all, &weft_int64_wait_until_any,
                             &weft_int64_wait_until_some});
  } else if (type == "uint32") {
    with(Calls<std::uint32_t>{&weft_uint32_wait_until_all, &weft_uint32_wait_until_any,
                              &weft_uint32_wait_until_some});
  } else if (type == "int32") {
    with(Calls<std::int32_t>{&weft_int32_wait_until_all, &weft_int32_wait_until_any,
                             &weft_int32_wait_until_some});
  } else {
    throw Failure(Kind::WrongDtype, std::string(words.name) + ": the words are of " +
                                        std::string(type) +
                                        "; waits are for int32, int64, uint32 and uint64");
  }
}

void wait_until_all(nb::handle words,
                    std::string_view comparison,
                    nb::handle value,
                    nb::handle done) {
  const Words all(words, comparison, done, "weft.wait_until_all");
  wait(all, value, [&](const auto& calls, auto* address, auto number) {
    calls.all(address, all.memory.count(), all.status(), all.comparison, number);
  });
}

std::optional<std::size_t> wait_until_any(nb::handle words,
                                          std::string_view comparison,
                                          nb::handle value,
                                          nb::handle done) {
  const Words all(words, comparison, done, "weft.wait_until_any");
  std::size_t index = SIZE_MAX;
  wait(all, value, [&](const auto& calls, auto* address, auto number) {
    index = calls.any(address, all.memory.count(), all.status(), all.comparison, number);
  });
  return index == SIZE_MAX ? std::nullopt : std::optional(index);
}

std::vector<std::size_t> wait_until_some(nb::handle words,
                                         std::string_view comparison,
                                         nb::handle value,
                                         nb::handle done) {
  const Words all(words, comparison, done, "weft.wait_until_some");
  std::vector<std::size_t> indices(all.memory.count());
  wait(all, value, [&](const auto& calls, auto* address, auto number) {
    indices.resize(calls.some(address, all.memory.count(), indices.data(), all.status(),
                              all.comparison, number));
  });
  return indices;
}

template <typename Function>
void define(nb::module_& module, const char* name, Function function) {
  module.def(name, function, doc(name), "words"_a.none(), "comparison"_a, "value"_a, nb::kw_only(),
             "done"_a = nb::none());
}

}  // namespace

void register_waits(nb::module_& module) {
  define(module, "wait_until_all", &wait_until_all);
  define(module, "wait_until_any", &wait_until_any);
  define(module, "wait_until_some", &wait_until_some);
}

}  // namespace weft::python
