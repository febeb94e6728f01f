#include "docstrings.hpp"

#include <string_view>

namespace weft::python {
namespace {

struct Docstring {
  std::string_view name;
  const char* text;
};

constexpr Docstring kDocstrings[] = {
#include "docstrings.inc"
};

}  // namespace

const char* doc(const char* name) {
  for (const Docstring& docstring : kDocstrings) {
    if (docstring.name == name) {
      return docstring.text;
    }
  }
  return "";
}

}  // namespace weft::python
