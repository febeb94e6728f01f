// The kernels for ranks on several nodes.
#define WEFT_MOE_KERNELS between_nodes

namespace weft::gpu::moe::between_nodes {
inline constexpr bool kBetweenNodes = true;
inline constexpr bool kHasManyRows = false;
}  // namespace weft::gpu::moe::between_nodes

#include "src/gpu/moe/all_kernels.cuh"

namespace weft::gpu::moe {
const Kernels kKernelsBetweenNodes = between_nodes::kKernels;
}
