// The grid of CUDA's cooperative groups, as far as Weft uses it.
#pragma once

#include <cuda_runtime.h>

namespace cooperative_groups {

struct grid_group {
  [[nodiscard]] bool is_valid() const {
    return weft_emulated::here().block->kernel->is_cooperative;
  }

  void sync(weft_emulated::Place where = weft_emulated::Place::current()) const {
    weft_emulated::meet_in_grid(where);
  }
};

inline grid_group this_grid() {
  return {};
}

}  // namespace cooperative_groups
