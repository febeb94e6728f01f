#include "moe/src/gpu/gpu_shape.hpp"

#include <weft/device.h>
#include <weft/moe/layouts.hpp>

#include <algorithm>
#include <cstddef>
#include <set>

#include "moe/src/plan/element.hpp"
#include "moe/src/plan/groups.hpp"
#include "src/base/error.hpp"
#include "src/gpu/buffer.hpp"

namespace weft::moe::engine {
namespace {

// Whether a row goes once to each node, where nodes have several ranks.
bool may_share(const weft_moe_config& config) {
  return config.row_per != WEFT_MOE_ROW_PER_RANK && config.on_timeout == WEFT_MOE_ERROR;
}

// Partial sums that are sent between nodes, by each rank or by all of a node together.
void place_partial_sums(const weft_moe_config& config, const Ranks& ranks, gpu::Shape& shape) {
  shape.staged_places = shape.far_places = shape.ranks();
  const std::vector<int> nodes = ranks.nodes();
  const Groups groups(nodes, static_cast<std::size_t>(ranks.me), true);
  if (!may_share(config) || groups.mates_max() == 1) {
    return;
  }
  shape.relayed = static_cast<std::uint32_t>(groups.sources_max());
  shape.shares_apart = is_in_place(config.layout);
  shape.parts = std::min(shape.topk, static_cast<std::uint32_t>(groups.mates_max()));
  shape.staged_places = shape.relayed;
  shape.far_places = static_cast<std::uint32_t>(std::set(nodes.begin(), nodes.end()).size());
  with_type(config.output, [&]<typename Type>(Type /*type*/) {
    shape.part_bytes = shape.hidden * static_cast<std::uint32_t>(sizeof(typename Type::Sum));
  });
}

}  // namespace

gpu::Shape gpu_shape(const weft_moe_config& config, const Ranks& ranks) {
  const auto hidden = static_cast<std::size_t>(config.hidden);
  const auto topk = static_cast<std::size_t>(config.topk);
  gpu::Shape shape;
  shape.map = {config.experts, static_cast<std::int32_t>(ranks.count())};
  shape.row = gpu::RowShape(
      {row_bytes_of(config.payload, hidden), scale_bytes_of(config.scales, hidden), topk, topk});
  shape.max_tokens = static_cast<std::uint32_t>(config.max_tokens);
  shape.topk = static_cast<std::uint32_t>(config.topk);
  shape.hidden = static_cast<std::uint32_t>(config.hidden);
  shape.output_bytes = static_cast<std::uint32_t>(row_bytes_of(config.output, hidden));
  shape.generations = is_in_place(config.layout) ? 3 : 2;
  shape.stages = ranks.span_nodes();
  shape.keeps_outputs = config.outputs_in_place != 0;
  shape.polls = !shape.stages && config.on_timeout != WEFT_MOE_MASK &&
                shape.max_tokens <= gpu::kPolledTokensMax &&
                shape.arrivals() <= gpu::kPolledRowsMax;
  if (shape.stages) {
    place_partial_sums(config, ranks, shape);
  }
  shape.settle();
  return shape;
}

void clear_polled(const gpu::Shape& shape, std::byte* memory, std::uint64_t dispatches) {
  if (shape.polls) {
    const auto put_back = static_cast<std::uint32_t>(dispatches);
    weft::gpu::fill(memory + shape.partial_sums_begin,
                    shape.partial_sums_arrived_begin - shape.partial_sums_begin, gpu::kEmptySlot);
    weft::gpu::fill(memory + shape.polled_begin, shape.put_back_begin - shape.polled_begin,
                    gpu::kEmptySlot);
    weft::gpu::fill(memory + shape.put_back_begin, shape.outputs_begin - shape.put_back_begin,
                    put_back);
  }
}

std::byte* outputs_of(const gpu::Shape& shape, std::byte* memory, std::uint64_t number) {
  return shape.keeps_outputs ? memory + shape.output_at(shape.turn_of(number) * shape.arrivals())
                             : nullptr;
}

void find_outputs(const gpu::Shape& shape, const std::byte* memory, gpu::Combine& call) {
  if (!shape.keeps_outputs || call.rows < memory + shape.output_at(0) ||
      call.rows >= memory + shape.bytes()) {
    return;
  }
  for (std::size_t turn = 0; turn < shape.generations; ++turn) {
    const std::size_t first = turn * shape.arrivals();
    if (call.rows == memory + shape.output_at(first) && call.stride == shape.output_bytes) {
      call.is_in_place = call.precision == WEFT_MOE_REDUCED && !shape.stages;
      call.first_output = static_cast<std::uint32_t>(first);
      return;
    }
  }
  fail(Status::InvalidArgument,
       "expert_out, {}, is a part of the outputs of a dispatch; give all of them, from their first "
       "row on, with a stride of {} bytes",
       static_cast<const void*>(call.rows), shape.output_bytes);
}

std::string gpu_error(const weft_moe_config& config, const Ranks& ranks) {
  const gpu::Shape shape = gpu_shape(config, ranks);
  if (shape.ranks() > kRanksMax) {
    return fmt::format("the team has {} ranks, and an exchange on GPUs has at most {}",
                       shape.ranks(), kRanksMax);
  }
  if (const std::size_t tail = shape.row.bytes() - shape.row.scales_at(); tail > gpu::kTailMax) {
    return fmt::format(
        "scales, ids and weights of a row take {} bytes, and on a GPU at most {}; lower hidden or "
        "topk",
        tail, gpu::kTailMax);
  }
  return "";
}

}  // namespace weft::moe::engine
