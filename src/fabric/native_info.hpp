// The fi_info behind a NicInfo, and the conversion of libfabric errors to Weft's Error.
//
// Private to this folder: no libfabric type leaves it.
// Constant after creation; any thread. Control path only.
#pragma once

#include "src/fabric/handles.hpp"

namespace weft::fabric {

struct NativeInfo {
  InfoHandle info;
  decltype(&::fi_fabric) open_fabric =
      nullptr;  // null: libfabric's; tests have a provider of their own
};

// The version of the API that is asked for, by a library of this version: 1.20, from which on a
// dma-buf can be registered, or the library's own. Not that of the headers: a provider withholds
// what came later than the version asked for, as EFA its RDMA reads on some devices before 1.18.
// Structures that have grown since 1.17 are padded where they are used: GrownRegistration,
// GrownErrorEntry.
[[nodiscard]] std::uint32_t api_version(std::uint32_t library_version);

// "fi_mr_reg failed on nic0 (10.0.0.1): Cannot allocate memory; HINT". Throws Error if code < 0.
void check(long code, const char* action, const std::string& object, const char* hint);

}  // namespace weft::fabric
