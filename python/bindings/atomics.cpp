// Atomics on one element of a PE, by the element's type.
#include <weft/typed.hpp>
#include <weft/weft.h>

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "comparison.hpp"
#include "context.hpp"
#include "docstrings.hpp"
#include "memory.hpp"
#include "rma.hpp"
#include "session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

// Calls `function` with a value of the element's C type.
template <bool kIntegersOnly, typename Function>
nb::object by_type(const Dtype& dtype, const char* name, Function&& function) {
  if (dtype.name == "int32") {
    return function(std::int32_t{});
  }
  if (dtype.name == "int64") {
    return function(std::int64_t{});
  }
  if (dtype.name == "uint32") {
    return function(std::uint32_t{});
  }
  if (dtype.name == "uint64") {
    return function(std::uint64_t{});
  }
  if constexpr (!kIntegersOnly) {
    if (dtype.name == "float32") {
      return function(float{});
    }
    if (dtype.name == "float64") {
      return function(double{});
    }
  }
  throw Failure(Kind::WrongDtype, std::string(name) + ": dest is of " + std::string(dtype.name) +
                                      "; this atomic is for int32, int64, uint32 and uint64" +
                                      (kIntegersOnly ? "" : ", float32 and float64"));
}

// What every atomic needs: one element of CPU memory, and the context.
struct Place {
  Place(nb::handle dest, const Context* context_of_user, const char* name)
      : memory((require_ready(name), dest), Memory::Use::Read, name),
        context(handle_of(context_of_user, name)) {
    if (memory.count() != 1) {
      throw Failure(Kind::WrongShape, std::string(name) + ": dest has " +
                                          std::to_string(memory.count()) +
                                          " elements; an atomic is on one: array[i]");
    }
    if (memory.device() != kHost) {
      throw Failure(Kind::WrongDevice,
                    std::string(name) +
                        ": dest is in GPU memory, whose atomics kernels call (weft/device.cuh)");
    }
  }

  Memory memory;
  weft_ctx_t context;
};

template <typename Call>
auto without_gil(const char* name, Call&& call) {
  const Waiting waiting(name);
  return call();
}

template <typename T, typename Call>
nb::object finish_status(const Place& place, const char* name, Call&& call) {
  T* address = static_cast<T*>(place.memory.address());
  check_status(without_gil(name, [&] { return call(address); }), name, address);
  return nb::none();
}

template <typename T, typename Call>
nb::object finish_value(const Place& place, const char* name, Call&& call) {
  T* address = static_cast<T*>(place.memory.address());
  const T old = without_gil(name, [&] { return call(address); });
  if (const int status = weft_take_error(); status < 0) {
    check_status(status, name, address);
  }
  return nb::cast(old);
}

// NOLINTBEGIN(cppcoreguidelines-macro-usage): the library's functions differ in their names alone
#define WEFT_ATOMIC(function, finisher, integers)                               \
  [](nb::handle dest, nb::handle value, int pe, const Context* context) {       \
    constexpr const char* kName = "weft." #function;                            \
    const Place place(dest, context, kName);                                    \
    return by_type<integers>(place.memory.dtype(), kName, [&](auto zero) {      \
      using T = decltype(zero);                                                 \
      const T number = number_of<T>(value, kName);                              \
      return finisher<T>(place, kName, [&](T* address) {                        \
        return TypedFunctions<T>::function(place.context, address, number, pe); \
      });                                                                       \
    });                                                                         \
  }
#define WEFT_ATOMIC_OF_NONE(function, finisher, integers)                  \
  [](nb::handle dest, int pe, const Context* context) {                    \
    constexpr const char* kName = "weft." #function;                       \
    const Place place(dest, context, kName);                               \
    return by_type<integers>(place.memory.dtype(), kName, [&](auto zero) { \
      using T = decltype(zero);                                            \
      return finisher<T>(place, kName, [&](T* address) {                   \
        return TypedFunctions<T>::function(place.context, address, pe);    \
      });                                                                  \
    });                                                                    \
  }
// NOLINTEND(cppcoreguidelines-macro-usage)

nb::object compare_swap(
    nb::handle dest, nb::handle condition, nb::handle value, int pe, const Context* context) {
  constexpr const char* kName = "weft.atomic_compare_swap";
  const Place place(dest, context, kName);
  return by_type<true>(place.memory.dtype(), kName, [&](auto zero) {
    using T = decltype(zero);
    const T expected = number_of<T>(condition, kName);
    const T number = number_of<T>(value, kName);
    return finish_value<T>(place, kName, [&](T* address) {
      return TypedFunctions<T>::atomic_compare_swap(place.context, address, expected, number, pe);
    });
  });
}

template <typename Function>
void define(nb::module_& module, const char* name, Function&& function) {
  module.def(name, function, doc(name), "dest"_a.none(), "value"_a, "pe"_a, nb::kw_only(),
             "context"_a.none() = nb::none());
}

template <typename Function>
void define_of_none(nb::module_& module, const char* name, Function&& function) {
  module.def(name, function, doc(name), "dest"_a.none(), "pe"_a, nb::kw_only(),
             "context"_a.none() = nb::none());
}

}  // namespace

void register_atomics(nb::module_& module) {
  define(module, "atomic_set", WEFT_ATOMIC(atomic_set, finish_status, false));
  define(module, "atomic_add", WEFT_ATOMIC(atomic_add, finish_status, true));
  define(module, "atomic_and", WEFT_ATOMIC(atomic_and, finish_status, true));
  define(module, "atomic_or", WEFT_ATOMIC(atomic_or, finish_status, true));
  define(module, "atomic_xor", WEFT_ATOMIC(atomic_xor, finish_status, true));
  define(module, "atomic_swap", WEFT_ATOMIC(atomic_swap, finish_value, false));
  define(module, "atomic_fetch_add", WEFT_ATOMIC(atomic_fetch_add, finish_value, true));
  define(module, "atomic_fetch_and", WEFT_ATOMIC(atomic_fetch_and, finish_value, true));
  define(module, "atomic_fetch_or", WEFT_ATOMIC(atomic_fetch_or, finish_value, true));
  define(module, "atomic_fetch_xor", WEFT_ATOMIC(atomic_fetch_xor, finish_value, true));
  define_of_none(module, "atomic_fetch", WEFT_ATOMIC_OF_NONE(atomic_fetch, finish_value, false));
  define_of_none(module, "atomic_inc", WEFT_ATOMIC_OF_NONE(atomic_inc, finish_status, true));
  define_of_none(module, "atomic_fetch_inc",
                 WEFT_ATOMIC_OF_NONE(atomic_fetch_inc, finish_value, true));
  module.def("atomic_compare_swap", &compare_swap, doc("atomic_compare_swap"), "dest"_a.none(),
             "condition"_a, "value"_a, "pe"_a, nb::kw_only(), "context"_a.none() = nb::none());
}

}  // namespace weft::python
