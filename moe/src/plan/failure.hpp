// Errors of Weft's own calls below this layer, as exceptions with the text that the call left. For
// use where the C interface of this layer catches them.
//
// Threads: any; errors belong to the calling thread.
#pragma once

#include <weft/weft.h>

#include "src/base/error.hpp"

namespace weft::moe::engine {

inline void check(int status) {
  if (status < 0) [[unlikely]] {
    weft_take_error();
    throw Error(static_cast<Status>(status), weft_last_error());
  }
}

}  // namespace weft::moe::engine
