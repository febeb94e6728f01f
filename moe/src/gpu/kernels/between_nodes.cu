// The kernels for ranks on several nodes.
#define WEFT_MOE_KERNELS between_nodes

namespace weft::moe::gpu::between_nodes {
inline constexpr bool kBetweenNodes = true;
inline constexpr bool kHasWarpPerRow = false;
}  // namespace weft::moe::gpu::between_nodes

#include "moe/src/gpu/kernels/combine.cuh"
#include "moe/src/gpu/kernels/dispatch.cuh"

namespace weft::moe::gpu {
const Kernels kKernelsBetweenNodes = between_nodes::kKernels;
}
