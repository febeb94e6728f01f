// The functions of weft/moe.h: arguments that need no engine, exceptions to statuses.
#include <weft/moe.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "src/api/errors.hpp"
#include "src/base/error.hpp"
#include "src/gpu/moe/staging.hpp"
#include "src/moe/agree.hpp"
#include "src/moe/element.hpp"
#include "src/moe/exchange.hpp"
#include "src/moe/failure.hpp"
#include "src/moe/gpu_exchange.hpp"

namespace engine = weft::moe::engine;

struct weft_moe {
  weft_moe_memory where = WEFT_MOE_HOST;
  std::byte* memory = nullptr;
  std::unique_ptr<engine::Exchange> exchange;  // or the next, or neither on a PE without a part
  std::unique_ptr<engine::GpuExchange> on_gpu;
};

struct weft_moe_plan {
  std::unique_ptr<engine::Routing> routing;
};

namespace {

constexpr int kExpertsMax = 4096;
constexpr int kTopkMax = 32;
constexpr int kTokensMax = 1 << 20;
constexpr std::size_t kRowUnit = 16;

// Runs `body`; its exceptions become the status and the text of weft_last_error.
template <typename Body>
int guarded(const char* name, Body&& body) {
  try {
    if (weft_initialized() == 0) {
      return weft::api::report_not_initialized(name);
    }
    std::forward<Body>(body)();
    return WEFT_OK;
  } catch (const weft::Error& error) {
    return weft::api::report(error.status(), fmt::format("{}: {}", name, error.what()));
  } catch (const std::exception& error) {
    return weft::api::report(weft::Status::Internal, fmt::format("{}: {}", name, error.what()));
  }
}

void require_handle(const void* handle) {
  if (handle == nullptr) {
    weft::fail(weft::Status::InvalidArgument,
               "the exchange, plan or structure is NULL; give what the function before returned");
  }
}

engine::Exchange& engine_of(weft_moe_t exchange) {
  require_handle(exchange);
  if (exchange->on_gpu != nullptr) {
    weft::fail(weft::Status::InvalidArgument,
               "the exchange works in GPU memory; use the functions on a stream");
  }
  if (exchange->exchange == nullptr) {
    weft::fail(weft::Status::InvalidArgument, "this PE has no part in the exchange");
  }
  return *exchange->exchange;
}

engine::GpuExchange& gpu_engine_of(weft_moe_t exchange) {
  require_handle(exchange);
  if (exchange->on_gpu == nullptr) {
    weft::fail(weft::Status::InvalidArgument,
               "the exchange is none of GPU memory, or this PE has no part in it; make it with "
               "WEFT_MOE_DEVICE, or use the functions without a stream");
  }
  return *exchange->on_gpu;
}

std::string out_of_range(const char* name, int value, int least, int most) {
  return value >= least && value <= most
             ? ""
             : fmt::format("{} is {}; give {} to {}", name, value, least, most);
}

std::string sizes_error(const weft_moe_config& config) {
  const int ranks = weft_team_pe_count(config.team);
  if (ranks < 1) {
    return "team is not a team of this PE";
  }
  for (const std::string& error : {out_of_range("max_tokens", config.max_tokens, 1, kTokensMax),
                                   out_of_range("hidden", config.hidden, 1, 1 << 20),
                                   out_of_range("topk", config.topk, 1, kTopkMax),
                                   out_of_range("alignment", config.alignment, 1, 1 << 16)}) {
    if (!error.empty()) {
      return error;
    }
  }
  if (config.experts < ranks || config.experts > kExpertsMax) {
    return fmt::format("experts is {}; give at least one for each of the {} ranks, at most {}",
                       config.experts, ranks, kExpertsMax);
  }
  if (config.row_per < WEFT_MOE_ROW_PER_AUTO || config.row_per > WEFT_MOE_ROW_PER_NODE) {
    return "row_per is none of the values that weft/moe.h names";
  }
  const bool is_by_rank =
      config.layout == WEFT_MOE_RANK_MAJOR || config.layout == WEFT_MOE_RANK_COMPACT;
  if (config.row_per == WEFT_MOE_ROW_PER_NODE && config.memory == WEFT_MOE_DEVICE &&
      config.on_timeout == WEFT_MOE_MASK) {
    return "row_per is node, which in GPU memory is not there with WEFT_MOE_MASK; give auto or "
           "rank";
  }
  if (config.outputs_in_place != 0 && (config.memory != WEFT_MOE_DEVICE || !is_by_rank)) {
    return "outputs_in_place is for exchanges in GPU memory with a rank layout; leave it 0 for "
           "others";
  }
  if (config.scales_by_column != 0 &&
      (config.layout != WEFT_MOE_EXPERT_PADDED || config.scales == WEFT_MOE_SCALES_NVFP4 ||
       engine::scale_bytes_of(config.scales, static_cast<std::size_t>(config.hidden)) % 4 != 0)) {
    return "scales_by_column is for the layout expert_padded and float32 or ue8m0 scales, of which "
           "a "
           "row has a multiple of 4 bytes; leave it 0 for others";
  }
  if (!(config.timeout_s > 0)) {
    return fmt::format("timeout is {} s; give more than 0", config.timeout_s);
  }
  return "";
}

std::string types_error(const weft_moe_config& config) {
  const auto hidden = static_cast<std::size_t>(config.hidden);
  const bool is_fp4 = config.payload == WEFT_MOE_NVFP4;
  if (config.payload < WEFT_MOE_BF16 || config.payload > WEFT_MOE_NVFP4 ||
      config.output < WEFT_MOE_BF16 || config.output > WEFT_MOE_F64 ||
      config.scales < WEFT_MOE_SCALES_NONE || config.scales > WEFT_MOE_SCALES_NVFP4 ||
      config.layout < WEFT_MOE_RANK_MAJOR || config.layout > WEFT_MOE_EXPERT_COMPACT) {
    return "payload, scales, output or layout is none of the values that weft/moe.h names";
  }
  if (is_fp4 != (config.scales == WEFT_MOE_SCALES_NVFP4) ||
      (config.scales != WEFT_MOE_SCALES_NONE && !engine::is_quantized(config.payload))) {
    return fmt::format(
        "scales do not fit the payload {}; nvfp4 has its own scales, fp8 has f32, ue8m0 or none, "
        "others have none",
        engine::name_of(config.payload));
  }
  for (const weft_moe_type type : {config.payload, config.output}) {
    if (engine::row_bytes_of(type, hidden) % kRowUnit != 0) {
      return fmt::format(
          "a row of {} values of {} has {} bytes; give a hidden that makes it a "
          "multiple of {}",
          hidden, engine::name_of(type), engine::row_bytes_of(type, hidden), kRowUnit);
    }
  }
  return "";
}

// Symmetric memory of the kind that the exchange works in.
std::byte* take_memory(weft_moe_memory where, std::size_t bytes) {
  void* memory = where == WEFT_MOE_DEVICE ? weft_device_calloc(1, bytes) : weft_calloc(1, bytes);
  if (memory == nullptr) {
    engine::check(weft_take_error());
  }
  return static_cast<std::byte*>(memory);
}

int give_memory(weft_moe_memory where, std::byte* memory) {
  return where == WEFT_MOE_DEVICE ? weft_device_free(memory) : weft_free(memory);
}

std::size_t bytes_of(const weft_moe_config& config) {
  return config.memory == WEFT_MOE_DEVICE ? weft::gpu::moe::memory_bytes(engine::gpu_shape(config))
                                          : engine::memory_bytes(config);
}

// A second agreement: that each rank can reach the others' memory is known only now.
void make_on_gpu(const weft_moe_config& config, bool takes_part, weft_moe& made) {
  std::string error;
  if (takes_part) {
    try {
      made.on_gpu = std::make_unique<engine::GpuExchange>(config, made.memory);
    } catch (const weft::Error& raised) {
      error = raised.what();
    }
  }
  try {
    static_cast<void>(engine::agree(config, 0, error));
  } catch (const weft::Error&) {
    made.on_gpu.reset();
    give_memory(made.where, made.memory);
    throw;
  }
}

void create(const weft_moe_config& config, weft_moe_t* exchange) {
  const bool takes_part = config.team != WEFT_TEAM_INVALID;
  std::string error;
  std::size_t bytes = 0;
  if (takes_part) {
    error = sizes_error(config);
    error = error.empty() ? types_error(config) : error;
    error = error.empty() && config.memory == WEFT_MOE_DEVICE ? engine::gpu_error(config) : error;
    bytes = error.empty() ? bytes_of(config) : 0;
  }
  const engine::Agreement agreed = engine::agree(config, bytes, error);
  auto made = std::make_unique<weft_moe>();
  made->where = config.memory;
  made->memory = take_memory(made->where, agreed.bytes);
  if (made->where == WEFT_MOE_DEVICE) {
    make_on_gpu(config, takes_part, *made);
  } else if (takes_part) {
    made->exchange = std::make_unique<engine::Exchange>(config, agreed.shares_memory, made->memory);
  }
  *exchange = made.release();
}

}  // namespace

int weft_moe_create(const weft_moe_config* config, weft_moe_t* exchange) {
  return guarded("weft_moe_create", [&] {
    require_handle(config);
    require_handle(exchange);
    create(*config, exchange);
  });
}

int weft_moe_destroy(weft_moe_t exchange) {
  return guarded("weft_moe_destroy", [&] {
    if (exchange != nullptr) {
      const std::unique_ptr<weft_moe> taken(exchange);
      taken->exchange.reset();
      taken->on_gpu.reset();
      engine::check(give_memory(taken->where, taken->memory));
    }
  });
}

int weft_moe_get_shape(weft_moe_t exchange, weft_moe_shape* shape) {
  return guarded("weft_moe_get_shape", [&] {
    require_handle(exchange);
    *shape = exchange->on_gpu != nullptr ? exchange->on_gpu->shape() : engine_of(exchange).shape();
  });
}

int weft_moe_dispatch_send(weft_moe_t exchange, const weft_moe_tokens* tokens) {
  return guarded("weft_moe_dispatch_send", [&] {
    require_handle(exchange);
    require_handle(tokens);
    engine_of(exchange).dispatch_send(*tokens);
  });
}

int weft_moe_dispatch_recv(weft_moe_t exchange, weft_moe_rows* rows, weft_moe_plan_t* plan) {
  return guarded("weft_moe_dispatch_recv", [&] {
    require_handle(exchange);
    require_handle(rows);
    require_handle(plan);
    auto made = std::make_unique<weft_moe_plan>();
    made->routing = engine_of(exchange).dispatch_recv(*rows);
    *plan = made.release();
  });
}

void weft_moe_plan_free(weft_moe_plan_t plan) {
  delete plan;
}

int weft_moe_combine_send(weft_moe_t exchange,
                          weft_moe_plan_t plan,
                          const weft_moe_outputs* outputs) {
  return guarded("weft_moe_combine_send", [&] {
    require_handle(exchange);
    require_handle(plan);
    require_handle(outputs);
    engine_of(exchange).combine_send(*plan->routing, *outputs);
  });
}

int weft_moe_combine_recv(weft_moe_t exchange, void* out) {
  return guarded("weft_moe_combine_recv", [&] {
    require_handle(exchange);
    engine_of(exchange).combine_recv(static_cast<std::byte*>(out));
  });
}

int weft_moe_refuse(weft_moe_t exchange, weft_moe_step step, const char* text) {
  return guarded("weft_moe_refuse", [&] {
    require_handle(exchange);
    require_handle(text);
    engine_of(exchange).refuse(step, text);
  });
}

int weft_moe_active(weft_moe_t exchange, uint8_t* active) {
  return guarded("weft_moe_active", [&] {
    require_handle(exchange);
    require_handle(active);
    const std::vector<bool> ranks = exchange->on_gpu != nullptr
                                        ? exchange->on_gpu->active()
                                        : engine_of(exchange).attendance().active();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      active[rank] = ranks[rank] ? 1 : 0;
    }
  });
}

int weft_moe_leave_out(weft_moe_t exchange, int rank) {
  return guarded("weft_moe_leave_out", [&] {
    require_handle(exchange);
    const weft_moe_shape shape =
        exchange->on_gpu != nullptr ? exchange->on_gpu->shape() : engine_of(exchange).shape();
    if (rank < 0 || rank >= shape.ranks || rank == shape.rank) {
      weft::fail(weft::Status::InvalidArgument,
                 "rank is {}; give another of the {} ranks than this PE's own, {}", rank,
                 shape.ranks, shape.rank);
    }
    if (exchange->on_gpu != nullptr) {
      exchange->on_gpu->leave_out(static_cast<std::size_t>(rank));
    } else {
      engine_of(exchange).attendance().leave_out(static_cast<std::size_t>(rank));
    }
  });
}

int weft_moe_rejoin(weft_moe_t exchange) {
  return guarded("weft_moe_rejoin", [&] {
    require_handle(exchange);
    if (exchange->on_gpu != nullptr) {
      exchange->on_gpu->rejoin();
    } else {
      engine_of(exchange).rejoin();
    }
  });
}

int weft_moe_sources(weft_moe_t exchange, weft_moe_plan_t plan, int32_t* ranks, int32_t* tokens) {
  return guarded("weft_moe_sources", [&] {
    for (const void* address : {static_cast<const void*>(plan), static_cast<const void*>(ranks),
                                static_cast<const void*>(tokens)}) {
      require_handle(address);
    }
    const std::size_t rows = engine_of(exchange).shape().rows_max;
    find_sources(*plan->routing, {{ranks, rows}, {tokens, rows}});
  });
}

int weft_moe_sources_on_stream(
    weft_moe_t exchange, const void* plan, int32_t* ranks, int32_t* tokens, weft_stream_t stream) {
  return guarded("weft_moe_sources_on_stream",
                 [&] { gpu_engine_of(exchange).sources(plan, ranks, tokens, stream); });
}

int weft_moe_count_destinations_on_stream(const weft_moe_destinations* destinations,
                                          weft_stream_t stream) {
  return guarded("weft_moe_count_destinations_on_stream", [&] {
    require_handle(destinations);
    const weft_moe_destinations& of = *destinations;
    constexpr auto kRanksMax = static_cast<int>(weft::gpu::moe::kRanksMax);
    for (const std::string& error :
         {out_of_range("tokens", of.tokens, 0, kTokensMax),
          out_of_range("topk", of.topk, 1, kTopkMax), out_of_range("ranks", of.ranks, 1, kRanksMax),
          out_of_range("experts", of.experts, std::clamp(of.ranks, 1, kRanksMax), kExpertsMax)}) {
      if (!error.empty()) {
        weft::fail(weft::Status::InvalidArgument, "{}", error);
      }
    }
    weft::moe::engine::count_destinations(*destinations, stream);
  });
}

int weft_moe_row_routes_on_stream(weft_moe_t exchange,
                                  const weft_moe_rows* rows,
                                  const weft_moe_row_routes* routes,
                                  weft_stream_t stream) {
  return guarded("weft_moe_row_routes_on_stream", [&] {
    require_handle(rows);
    require_handle(routes);
    gpu_engine_of(exchange).row_routes(*rows, *routes, stream);
  });
}

int weft_moe_set_blocks(weft_moe_t exchange, int blocks) {
  return guarded("weft_moe_set_blocks", [&] {
    if (blocks < 0) {
      weft::fail(weft::Status::InvalidArgument,
                 "blocks is {}; give a number of blocks, or 0 for all", blocks);
    }
    gpu_engine_of(exchange).set_blocks(blocks);
  });
}

int weft_moe_dispatch_on_stream(weft_moe_t exchange,
                                weft_moe_phase phase,
                                const weft_moe_tokens* tokens,
                                weft_moe_rows* rows,
                                void* plan,
                                weft_stream_t stream) {
  return guarded("weft_moe_dispatch_on_stream",
                 [&] { gpu_engine_of(exchange).dispatch(phase, tokens, rows, plan, stream); });
}

int weft_moe_combine_on_stream(weft_moe_t exchange,
                               weft_moe_phase phase,
                               void* plan,
                               const weft_moe_outputs* outputs,
                               void* out,
                               weft_stream_t stream) {
  return guarded("weft_moe_combine_on_stream", [&] {
    require_handle(outputs);
    gpu_engine_of(exchange).combine(phase, plan, *outputs, out, stream);
  });
}

int weft_moe_refuse_on_stream(weft_moe_t exchange, weft_moe_step step, weft_stream_t stream) {
  return guarded("weft_moe_refuse_on_stream",
                 [&] { gpu_engine_of(exchange).refuse(step, stream); });
}

int weft_moe_check(weft_moe_t exchange) {
  return guarded("weft_moe_check", [&] { gpu_engine_of(exchange).check(); });
}
