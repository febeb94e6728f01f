// What Loom does not have, as functions of any signature: libfabric's inline wrappers call through tables without
// looking, so no entry may be null.
//
// Threads: any.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdint>

namespace loom {

template <typename Result, typename... Arguments>
using Function = Result (*)(Arguments...);

// A function of the wanted signature that returns -FI_ENOSYS; converts to whatever table entry it initialises.
struct NotThere {
  template <typename Result, typename... Arguments>
  constexpr operator Function<Result, Arguments...>()
      const {  // NOLINT(google-explicit-constructor)
    return [](Arguments...) -> Result { return static_cast<Result>(-FI_ENOSYS); };
  }
};

inline constexpr NotThere kNotThere;

// An object of ours from libfabric's pointer to its first member.
template <typename Object, typename Native>
Object& object_of(Native* native) {
  return *static_cast<Object*>(native);
}

// The same from a bare fid, which is the first member of `Native`.
template <typename Object, typename Native>
Object& object_of_fid(fid* handle) {
  return *static_cast<Object*>(reinterpret_cast<Native*>(handle));
}

// The table that most objects have: they only close.
template <typename Object, typename Native>
fi_ops closing_ops() {
  return {.size = sizeof(fi_ops),
          .close =
              [](fid* handle) {
                delete &object_of_fid<Object, Native>(handle);
                return 0;
              },
          .bind = kNotThere,
          .control = kNotThere,
          .ops_open = kNotThere,
          .tostr = kNotThere,
          .ops_set = kNotThere};
}

}  // namespace loom
