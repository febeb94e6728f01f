// The kernels for ranks on several nodes.
#define WEFT_MOE_KERNELS between_nodes

namespace weft::gpu::moe::between_nodes {
inline constexpr bool kBetweenNodes = true;
inline constexpr bool kHasWarpPerRow = false;
}  // namespace weft::gpu::moe::between_nodes

#include "moe/src/gpu/kernels/combine.cuh"
#include "moe/src/gpu/kernels/dispatch.cuh"

namespace weft::gpu::moe {
const Kernels kKernelsBetweenNodes = between_nodes::kKernels;
}
