// Outputs in place (weft_moe_config.outputs_in_place): nothing is sent but heads, which say with which output those for a rank
// begin. A rank waits for the heads of all, then reads the outputs of its tokens in their memory, by the slots of their rows.
//
// An output is written again by kernels that follow a later dispatch. Each rank has sent its header of that behind the end of this
// combine, so all of it is read.
#pragma once

#include "src/gpu/moe/combine.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

inline constexpr std::uint32_t kNoOutputs = ~0U;

// One thread: the output with which those of `rank` for this one begin; none if it does not come, or makes another combine.
template <typename Way>
__device__ std::uint32_t await_first_output(const Combining<Way>& combining, std::uint32_t rank) {
  Header head{};
  if (combining.is_gone(rank) || !await_head(combining, rank, head)) {
    return kNoOutputs;
  }
  return static_cast<std::uint32_t>(head.rows);
}

// All threads of a block. Behind it they may read the outputs.
template <typename Way>
__device__ void await_first_outputs(const Combining<Way>& combining) {
  if (const std::uint32_t rank = thread_of_block(); rank < combining.exchange.shape.ranks()) {
    combining.shared.first_output[rank] = await_first_output(combining, rank);
  }
  __syncthreads();
}

// The output of `rank` for the row in its slot.
template <typename Way>
const __device__ std::byte* pulled_answer(const Combining<Way>& combining,
                                          std::uint32_t rank,
                                          std::int32_t slot) {
  const Exchange& exchange = combining.exchange;
  return exchange.memory[rank] + exchange.shape.output_at(combining.shared.first_output[rank] +
                                                          static_cast<std::uint32_t>(slot));
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
