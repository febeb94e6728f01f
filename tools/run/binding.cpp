#include "tools/run/binding.hpp"

#include <algorithm>

#include <hwloc.h>

#include "src/base/error.hpp"

namespace weft::run {

void CoreBinder::Destroy::operator()(hwloc_topology* topology) const {
  ::hwloc_topology_destroy(topology);
}

CoreBinder::CoreBinder(Binding binding, std::uint32_t pe_count) : pe_count_(pe_count) {
  if (binding == Binding::None) {
    return;
  }
  hwloc_topology_t topology = nullptr;
  if (::hwloc_topology_init(&topology) != 0) {
    fail("hwloc_topology_init failed; use --bind none");
  }
  topology_.reset(topology);
  // Cores that taskset or a batch system took away do not count.
  ::hwloc_topology_set_flags(
      topology, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  if (::hwloc_topology_load(topology) != 0) {
    fail("hwloc_topology_load failed; use --bind none");
  }
  by_numa_ = binding == Binding::Numa;
  const int core_count = ::hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  if (by_numa_ || static_cast<int>(pe_count) <= core_count) {
    return;
  }
  if (binding == Binding::Core) {
    fail(Status::InvalidArgument,
         "--bind core: {} PEs, but this machine has {} cores to use; use "
         "--bind none",
         pe_count, core_count);
  }
  topology_.reset();
}

bool CoreBinder::bind(std::uint32_t index) const {
  if (topology_ == nullptr) {
    return true;
  }
  const hwloc_obj_type_t type = by_numa_ ? HWLOC_OBJ_NUMANODE : HWLOC_OBJ_CORE;
  const auto count = static_cast<std::uint32_t>(::hwloc_get_nbobjs_by_type(topology_.get(), type));
  const std::uint32_t first = index * count / pe_count_;
  const std::uint32_t end = std::max(first + 1, (index + 1) * count / pe_count_);
  hwloc_bitmap_t cores = ::hwloc_bitmap_alloc();
  for (std::uint32_t i = first; i < end; ++i) {
    const hwloc_obj_t object = ::hwloc_get_obj_by_type(topology_.get(), type, i);
    if (object != nullptr) {
      ::hwloc_bitmap_or(cores, cores, object->cpuset);
    }
  }
  // The child's only thread. For the process hwloc would look for its threads in /proc, which may
  // be of another namespace.
  const bool is_bound = ::hwloc_bitmap_iszero(cores) != 0 ||
                        ::hwloc_set_cpubind(topology_.get(), cores, HWLOC_CPUBIND_THREAD) == 0;
  ::hwloc_bitmap_free(cores);
  return is_bound;
}

}  // namespace weft::run
