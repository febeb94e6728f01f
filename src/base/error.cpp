#include "src/base/error.hpp"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace weft {

std::string errno_words(int error_number) {
  return std::generic_category().message(error_number);
}

namespace internal {

void abort_with(const char* file, int line, const char* condition, const std::string& state) {
  std::fprintf(stderr, "weft: broken invariant at %s:%d: %s: %s\n", file, line, condition,
               state.c_str());
  std::abort();
}

}  // namespace internal
}  // namespace weft
