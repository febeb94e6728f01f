// What programs ask about routes in GPU memory: where tokens go, where rows came from, and which
// experts they name.
#include <cstddef>
#include <cstdint>

#include "moe/src/engines.hpp"
#include "moe/src/gpu/gpu_exchange.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {

void count_destinations(const weft_moe_destinations& destinations, weft_stream_t stream) {
  thread_local const GpuMemoryChecks checks;
  if (destinations.tokens > 0) {
    checks.require("topk_ids", destinations.topk_ids, alignof(std::int64_t));
    checks.require("is_in_rank", destinations.is_in_rank, 1);
  }
  checks.require("tokens_of_rank", destinations.tokens_of_rank, alignof(std::int32_t));
  checks.require("tokens_of_expert", destinations.tokens_of_expert, alignof(std::int32_t));
  gpu::Destinations call;
  call.ids = destinations.topk_ids;
  call.tokens = static_cast<std::uint32_t>(destinations.tokens);
  call.topk = static_cast<std::uint32_t>(destinations.topk);
  call.experts = destinations.experts;
  call.of_rank = destinations.tokens_of_rank;
  call.of_expert = destinations.tokens_of_expert;
  call.is_in_rank = destinations.is_in_rank;
  enqueued(gpu::count_destinations(call, destinations.ranks, stream));
}

void GpuExchange::sources(const SourcesCall& call, const Plan& plan) {
  memory_checks_.require("plan", plan.memory, kAlignment);
  memory_checks_.require("ranks", call.ranks, alignof(std::int32_t));
  memory_checks_.require("tokens", call.tokens, alignof(std::int32_t));
  const gpu::Sources kernel{static_cast<const std::byte*>(plan.memory), call.ranks, call.tokens,
                            shape().rows_max};
  enqueued(gpu::find_sources(exchange_, kernel, call.stream));
}

void GpuExchange::row_routes(const weft_moe_rows& rows,
                             const weft_moe_row_routes& routes,
                             weft_stream_t stream) const {
  if (config_.layout != WEFT_MOE_RANK_COMPACT) {
    fail(Status::InvalidArgument,
         "the layout of the exchange is {}; routes of rows are those of WEFT_MOE_RANK_COMPACT",
         static_cast<int>(config_.layout));
  }
  if (routes.rows < 0) {
    fail(Status::InvalidArgument, "rows is {}; give a number of rows", routes.rows);
  }
  const gpu::Shape& shape = exchange_.shape;
  const auto optional = [&](const char* name, const void* address, std::uintptr_t alignment) {
    if (address != nullptr) {
      memory_checks_.require(name, address, alignment);
    }
  };
  memory_checks_.require("rows.ids", rows.ids, alignof(std::int32_t));
  memory_checks_.require("rows.weights", rows.weights, alignof(float));
  memory_checks_.require("rows.offsets", rows.offsets, alignof(std::int64_t));
  if (routes.rows > 0) {
    memory_checks_.require("ids", routes.ids, alignof(std::int64_t));
  }
  optional("weights", routes.weights, alignof(float));
  optional("counts", routes.counts, alignof(std::int64_t));
  gpu::RowRoutes call;
  call.ids = rows.ids;
  call.weights = rows.weights;
  call.row_count = rows.offsets + shape.ranks();
  call.topk = shape.topk;
  call.experts = static_cast<std::uint32_t>(shape.map.count_of(exchange_.me));
  call.rows = static_cast<std::uint32_t>(routes.rows);
  call.shown_ids = routes.ids;
  call.shown_weights = routes.weights;
  call.counts = routes.counts;
  enqueued(gpu::show_row_routes(call, stream));
}

}  // namespace weft::moe::engine
