// The kernels for ranks that share a node: no line is left that puts to another one.
#define WEFT_MOE_KERNELS in_node

namespace weft::gpu::moe::in_node {
inline constexpr bool kBetweenNodes = false;
inline constexpr bool kHasWarpPerRow = true;
}  // namespace weft::gpu::moe::in_node

#include "moe/src/gpu/kernels/combine.cuh"
#include "moe/src/gpu/kernels/dispatch.cuh"

namespace weft::gpu::moe {
const Kernels kKernelsInNode = in_node::kKernels;
}
