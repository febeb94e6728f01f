#include "failure.hpp"

#include <weft/weft.h>

#include <array>
#include <string_view>

namespace nb = nanobind;

namespace weft::python {
namespace {

constexpr std::array kNames{"Error",       "InvalidArgument", "NotInitialized", "PeerLost",
                            "OutOfMemory", "Mismatch",        "Timeout",        "NotSymmetric",
                            "NotMapped",   "NotContiguous",   "WrongDtype",     "WrongShape",
                            "WrongDevice", "Freed",           "Forked",         "NoCuda"};

Kind kind_of(int status) {
  switch (static_cast<weft_status>(status)) {
    case WEFT_INVALID_ARGUMENT:
      return Kind::InvalidArgument;
    case WEFT_NOT_INITIALIZED:
      return Kind::NotInitialized;
    case WEFT_PEER_LOST:
      return Kind::PeerLost;
    case WEFT_OUT_OF_MEMORY:
      return Kind::OutOfMemory;
    case WEFT_MISMATCH:
      return Kind::Mismatch;
    case WEFT_TIMEOUT:
      return Kind::Timeout;
    case WEFT_OK:
    case WEFT_AGAIN:
    case WEFT_INTERNAL:
      break;
  }
  return Kind::Error;
}

// The library's sentence under the name of the Python function, with that of the argument beside a
// variable's.
std::string renamed(std::string_view text, const char* name) {
  if (const std::size_t end = text.find(": ");
      text.starts_with("weft_") && end != std::string_view::npos) {
    text.remove_prefix(end + 2);
  }
  std::string said = std::string(name) + ": " + std::string(text);
  constexpr std::string_view kVariable = "WEFT_HEAP_SIZE";
  if (const std::size_t at = said.find(kVariable);
      at != std::string::npos && !said.substr(at + kVariable.size()).starts_with('=')) {
    said.insert(at, "heap_size of weft.init, or ");
  }
  return said;
}

}  // namespace

void check_status(int status, const char* name) {
  if (status < 0) [[unlikely]] {
    std::string text = renamed(weft_last_error(), name);
    weft_take_error();
    throw Failure(kind_of(status), std::move(text));
  }
}

void check_status(int status, const char* name, const void* symmetric) {
  if (status != WEFT_INVALID_ARGUMENT) {
    check_status(status, name);
    return;
  }
  std::string text = renamed(weft_last_error(), name);
  const bool is_symmetric = weft_ptr(symmetric, weft_pe()) != nullptr;
  weft_take_error();
  if (!is_symmetric) {
    text = std::string(name) +
           ": the array is not symmetric, so it names no memory of another PE; make it with "
           "weft.empty or "
           "weft.zeros, or register its memory with weft.register";
  }
  throw Failure(is_symmetric ? Kind::InvalidArgument : Kind::NotSymmetric, std::move(text));
}

void check_last_error(const char* name) {
  if (const int status = weft_take_error(); status < 0) [[unlikely]] {
    throw Failure(kind_of(status), renamed(weft_last_error(), name));
  }
}

void register_failure(nb::module_& module) {
  static PyObject* errors = nullptr;  // the module, kept as long as this one
  errors = nb::module_::import_("weft.errors").release().ptr();
  static_cast<void>(module);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const nb::object type =
          nb::handle(errors).attr(kNames.at(static_cast<std::size_t>(failure.kind())));
      PyErr_SetString(type.ptr(), failure.what());
    }
  });
}

}  // namespace weft::python
