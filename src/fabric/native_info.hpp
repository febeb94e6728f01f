// The fi_info behind a NicInfo, and the conversion of libfabric errors to Weft's Error.
//
// Private to this folder: no libfabric type leaves it.
// Constant after creation; any thread. Control path only.
#pragma once

#include "src/fabric/handles.hpp"

namespace weft::fabric {

struct NativeInfo {
  InfoHandle info;
};

// "fi_mr_reg failed on nic0 (10.0.0.1): Cannot allocate memory; HINT". Throws Error if code < 0.
void check(long code, const char* action, const std::string& object, const char* hint);

}  // namespace weft::fabric
