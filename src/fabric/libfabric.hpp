// libfabric, opened at run time: a site's own library (EFA's, Slingshot's) is the one that knows
// its NICs, and a program without other nodes needs none.
//
// Any thread. Only six functions are symbols of the library; all others in its headers are inline.
// Private to this folder, but for what discovery.hpp tells of it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "src/base/config.hpp"

namespace weft::fabric {

struct Libfabric {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_version) version = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

// As open_libfabric (discovery.hpp). Throws Error if none serves, naming those that were tried.
void require_libfabric(const Config& config);

// After it has been opened.
[[nodiscard]] const Libfabric& libfabric();

}  // namespace weft::fabric
