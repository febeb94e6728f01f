// What Loom does not have, as functions of any signature: libfabric's inline wrappers call through
// tables without looking, so no entry may be null.
//
// Threads: any.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdint>

namespace loom {

template <typename Result, typename... Arguments>
using Function = Result (*)(Arguments...);

// A function of the wanted signature that returns -FI_ENOSYS; converts to whatever table entry it
// initialises.
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

// Closes an object, or returns -FI_EBUSY while others need it.
template <typename Object, typename Native>
int close_object(fid* handle) {
  auto& object = object_of_fid<Object, Native>(handle);
  if constexpr (requires { object.is_needed(); }) {
    if (object.is_needed()) {
      return -FI_EBUSY;
    }
  }
  delete &object;
  return 0;
}

// The table that most objects have: they only close.
template <typename Object, typename Native>
fi_ops closing_ops() {
  return {.size = sizeof(fi_ops),
          .close = close_object<Object, Native>,
          .bind = kNotThere,
          .control = kNotThere,
          .ops_open = kNotThere,
          .tostr = kNotThere,
          .ops_set = kNotThere};
}

}  // namespace loom
