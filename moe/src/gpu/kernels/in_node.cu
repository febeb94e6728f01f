// The kernels for ranks that share a node: no line is left that puts to another one.
#define WEFT_MOE_KERNELS in_node

namespace weft::moe::gpu::in_node {
inline constexpr bool kBetweenNodes = false;
inline constexpr bool kHasWarpPerRow = true;
}  // namespace weft::moe::gpu::in_node

#include "moe/src/gpu/kernels/combine.cuh"
#include "moe/src/gpu/kernels/dispatch.cuh"

namespace weft::moe::gpu {
const Kernels kKernelsInNode = in_node::kKernels;
}
