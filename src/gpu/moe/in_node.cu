// The kernels for ranks that share a node: no line is left that puts to another one.
#define WEFT_MOE_KERNELS in_node

namespace weft::gpu::moe::in_node {
inline constexpr bool kBetweenNodes = false;
inline constexpr bool kHasManyRows = true;
}  // namespace weft::gpu::moe::in_node

#include "src/gpu/moe/all_kernels.cuh"

namespace weft::gpu::moe {
const Kernels kKernelsInNode = in_node::kKernels;
}
