// RAII over libfabric's objects. Members are closed in reverse order.
//
// Each object has a single owner, which closes it from one thread.
// Private to this folder: no libfabric type leaves it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <memory>

#include "src/fabric/libfabric.hpp"

namespace weft::fabric {

// One warning for each kind of object in a process: what failed to close, and why. `code` is
// fi_close(3)'s.
void report_unclosed(std::size_t object_class, int code) noexcept;

struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const noexcept {
    const std::size_t object_class = object->fid.fclass;  // the object may be gone afterwards
    if (const int code = fi_close(&object->fid); code != 0) {
      report_unclosed(object_class, code);
    }
  }
};

template <typename Object>
using Handle = std::unique_ptr<Object, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const noexcept { libfabric().freeinfo(info); }
};

using InfoHandle = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace weft::fabric
