// The two sets of kernels of an exchange, by whether its ranks share a node.
//
// The launchers are those of gpu/launchers.hpp; launches.cu chooses between the sets.
// Threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include "moe/src/gpu/launchers.hpp"

namespace weft::moe::gpu {

// Kernels that are loaded: the least number of blocks of one that a multiprocessor holds, and
// CUDA's first error.
struct Loaded {
  int blocks = 1 << 20;
  int error = 0;
};

struct Kernels {
  Loaded (*load_all)();
  int (*dispatch)(const KernelArguments& exchange,
                  const Dispatch& call,
                  Grid grid,
                  weft_stream_t stream);
  int (*combine)(const KernelArguments& exchange,
                 const Combine& call,
                 Grid grid,
                 weft_stream_t stream);
  int (*refuse)(const KernelArguments& exchange, weft_moe_step step, weft_stream_t stream);
};

// sources.cu and destinations.cu. Return CUDA's error.
[[nodiscard]] int load_sources();
[[nodiscard]] int load_destinations();

extern const Kernels kKernelsInNode;        // in_node.cu
extern const Kernels kKernelsBetweenNodes;  // between_nodes.cu

}  // namespace weft::moe::gpu
