#include "src/moe/gpu_shape.hpp"

#include <weft/device.h>

#include <algorithm>
#include <cstddef>

#include "src/base/error.hpp"
#include "src/moe/element.hpp"
#include "src/moe/ranks.hpp"

namespace weft::moe::engine {

gpu::moe::Shape gpu_shape(const weft_moe_config& config) {
  const auto hidden = static_cast<std::size_t>(config.hidden);
  const auto topk = static_cast<std::size_t>(config.topk);
  gpu::moe::Shape shape;
  shape.map = {config.experts, weft_team_pe_count(config.team)};
  shape.row = gpu::moe::RowShape(
      {row_bytes_of(config.payload, hidden), scale_bytes_of(config.scales, hidden), topk, topk});
  shape.max_tokens = static_cast<std::uint32_t>(config.max_tokens);
  shape.topk = static_cast<std::uint32_t>(config.topk);
  shape.hidden = static_cast<std::uint32_t>(config.hidden);
  shape.output_bytes = static_cast<std::uint32_t>(row_bytes_of(config.output, hidden));
  shape.generations = config.layout == WEFT_MOE_RANK_MAJOR ? 3 : 2;
  const Ranks ranks(config.team);
  shape.stages = std::any_of(ranks.pes.begin(), ranks.pes.end(),
                             [](int pe) { return weft_node_of(pe) != weft_node(); });
  shape.keeps_outputs = config.outputs_in_place != 0;
  shape.settle();
  return shape;
}

std::string gpu_error(const weft_moe_config& config) {
  if (weft_device_initialized() == 0) {
    return "memory is that of the GPU, and this PE has not taken one; call weft_device_init first";
  }
  const gpu::moe::Shape shape = gpu_shape(config);
  if (shape.ranks() > gpu::moe::kRanksMax) {
    return fmt::format("the team has {} ranks, and an exchange on GPUs has at most {}",
                       shape.ranks(), gpu::moe::kRanksMax);
  }
  if (const std::size_t tail = shape.row.bytes() - shape.row.scales_at();
      tail > gpu::moe::kTailMax) {
    return fmt::format(
        "scales, ids and weights of a row take {} bytes, and on a GPU at most {}; lower hidden or "
        "topk",
        tail, gpu::moe::kTailMax);
  }
  return "";
}

}  // namespace weft::moe::engine
