// The functions of weft/moe.h: handles, and exceptions to statuses. What they do is in the two
// engines (plan/engine.hpp).
#include <weft/extension.h>
#include <weft/moe.h>
#include <weft/moe/experts.hpp>

#include <memory>
#include <utility>

#include "moe/src/engines.hpp"
#include "moe/src/plan/agree.hpp"
#include "moe/src/plan/failure.hpp"
#include "moe/src/plan/validate.hpp"
#include "src/base/error.hpp"

namespace engine = weft::moe::engine;

struct weft_moe {
  weft_moe_memory where = WEFT_MOE_HOST;
  std::byte* memory = nullptr;
  std::unique_ptr<engine::Engine> engine;  // nullptr on a PE that does not take part
};

struct weft_moe_plan {
  engine::Plan plan;
};

namespace {

// Runs `body`; its exceptions become the status and the text of weft_last_error.
template <typename Body>
int reported(const char* name, Body&& body) {
  try {
    std::forward<Body>(body)();
    return WEFT_OK;
  } catch (const weft::Error& error) {
    return weft_report(static_cast<int>(error.status()),
                       fmt::format("{}: {}", name, error.what()).c_str());
  } catch (const std::exception& error) {
    return weft_report(WEFT_INTERNAL, fmt::format("{}: {}", name, error.what()).c_str());
  }
}

// The same for what needs a job.
template <typename Body>
int guarded(const char* name, Body&& body) {
  const int ready = weft_require_initialized(name);
  return ready == WEFT_OK ? reported(name, std::forward<Body>(body)) : ready;
}

// For arguments that must be there; `argument` is its name in weft/moe.h.
void require_given(const char* argument, const void* address) {
  if (address == nullptr) {
    weft::fail(weft::Status::InvalidArgument, "argument `{}` is NULL", argument);
  }
}

// Of an exchange in any memory.
engine::Engine& engine_of(weft_moe_t exchange) {
  require_given("exchange", exchange);
  if (exchange->engine == nullptr) {
    weft::fail(weft::Status::InvalidArgument, "this PE is not a member of the exchange's team");
  }
  return *exchange->engine;
}

engine::Engine& engine_in(weft_moe_memory memory, weft_moe_t exchange) {
  engine::Engine& found = engine_of(exchange);
  if (exchange->where != memory) {
    weft::fail(weft::Status::InvalidArgument, "{}",
               memory == WEFT_MOE_DEVICE
                   ? "this exchange is not in GPU memory; make it with WEFT_MOE_DEVICE, or use the "
                     "functions without a stream"
                   : "this exchange is in GPU memory; use the functions on a stream");
  }
  return found;
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

void create(const weft_moe_config& config, weft_moe_t* exchange) {
  std::string error;
  std::size_t bytes = 0;
  if (config.team != WEFT_TEAM_INVALID) {
    const engine::Ranks ranks(config.team);
    error = config.memory == WEFT_MOE_DEVICE && weft_device_initialized() == 0
                ? "memory is that of the GPU, and this PE has not taken one; call weft_device_init "
                  "first"
                : config_error(config, ranks);
    bytes = error.empty() ? memory_bytes(config, ranks) : 0;
  }
  const engine::Agreement agreed = engine::agree(config, bytes, error);
  auto made = std::make_unique<weft_moe>();
  made->where = config.memory;
  made->memory = take_memory(made->where, agreed.bytes);
  try {
    made->engine = engine::make_engine(config, agreed.shares_memory, made->memory);
  } catch (const weft::Error&) {
    give_memory(made->where, made->memory);
    throw;
  }
  *exchange = made.release();
}

}  // namespace

int weft_moe_create(const weft_moe_config* config, weft_moe_t* exchange) {
  return guarded("weft_moe_create", [&] {
    require_given("config", config);
    require_given("exchange", exchange);
    create(*config, exchange);
  });
}

int weft_moe_memory_bytes(const weft_moe_config* config, int ranks, int node_size, size_t* bytes) {
  const auto answer = [&](const engine::Ranks& of) {
    if (const std::string error = config_error(*config, of); !error.empty()) {
      weft::fail(weft::Status::InvalidArgument, "{}", error);
    }
    *bytes = memory_bytes(*config, of);
  };
  const auto check = [&] {
    require_given("config", config);
    require_given("bytes", bytes);
    constexpr auto kMost = static_cast<int>(weft::moe::kExpertsMax);
    if (ranks < 0 || ranks > kMost || node_size < 0) {
      weft::fail(
          weft::Status::InvalidArgument,
          "ranks is {} and node_size {}; give 1 to {} ranks, or 0 for those of the team, and "
          "0 or more ranks for each node",
          ranks, node_size, kMost);
    }
  };
  if (ranks == 0) {
    return guarded("weft_moe_memory_bytes", [&] {
      check();
      answer(engine::Ranks(config->team));
    });
  }
  return reported("weft_moe_memory_bytes", [&] {
    check();
    answer(engine::Ranks(ranks, node_size == 0 ? ranks : node_size));
  });
}

int weft_moe_destroy(weft_moe_t exchange) {
  return guarded("weft_moe_destroy", [&] {
    if (exchange != nullptr) {
      const std::unique_ptr<weft_moe> taken(exchange);
      taken->engine.reset();
      engine::check(give_memory(taken->where, taken->memory));
    }
  });
}

int weft_moe_get_shape(weft_moe_t exchange, weft_moe_shape* shape) {
  return guarded("weft_moe_get_shape", [&] {
    require_given("shape", shape);
    *shape = engine_of(exchange).shape();
  });
}

// ---- In CPU memory

int weft_moe_dispatch_send(weft_moe_t exchange, const weft_moe_tokens* tokens) {
  return guarded("weft_moe_dispatch_send", [&] {
    require_given("tokens", tokens);
    engine::Plan none;
    engine_in(WEFT_MOE_HOST, exchange).dispatch({WEFT_MOE_SEND, tokens}, none);
  });
}

int weft_moe_dispatch_recv(weft_moe_t exchange, weft_moe_rows* rows, weft_moe_plan_t* plan) {
  return guarded("weft_moe_dispatch_recv", [&] {
    require_given("rows", rows);
    require_given("plan", plan);
    auto made = std::make_unique<weft_moe_plan>();
    engine_in(WEFT_MOE_HOST, exchange).dispatch({WEFT_MOE_RECEIVE, nullptr, rows}, made->plan);
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
    require_given("plan", plan);
    require_given("outputs", outputs);
    engine_in(WEFT_MOE_HOST, exchange).combine({WEFT_MOE_SEND, outputs}, plan->plan);
  });
}

int weft_moe_combine_recv(weft_moe_t exchange, void* out) {
  return guarded("weft_moe_combine_recv", [&] {
    engine_in(WEFT_MOE_HOST, exchange).combine({WEFT_MOE_RECEIVE, nullptr, out}, {});
  });
}

int weft_moe_refuse(weft_moe_t exchange, weft_moe_step step, const char* text) {
  return guarded("weft_moe_refuse", [&] {
    require_given("text", text);
    engine_in(WEFT_MOE_HOST, exchange).refuse({step, text});
  });
}

int weft_moe_sources(weft_moe_t exchange, weft_moe_plan_t plan, int32_t* ranks, int32_t* tokens) {
  return guarded("weft_moe_sources", [&] {
    require_given("plan", plan);
    require_given("ranks", ranks);
    require_given("tokens", tokens);
    engine_in(WEFT_MOE_HOST, exchange).sources({ranks, tokens}, plan->plan);
  });
}

// ---- In either memory

int weft_moe_active(weft_moe_t exchange, uint8_t* active) {
  return guarded("weft_moe_active", [&] {
    require_given("active", active);
    const std::vector<bool> ranks = engine_of(exchange).active();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      active[rank] = ranks[rank] ? 1 : 0;
    }
  });
}

int weft_moe_leave_out(weft_moe_t exchange, int rank) {
  return guarded("weft_moe_leave_out", [&] {
    const weft_moe_shape shape = engine_of(exchange).shape();
    if (rank < 0 || rank >= shape.ranks || rank == shape.rank) {
      weft::fail(weft::Status::InvalidArgument,
                 "rank is {}; give another of the {} ranks than this PE's own, {}", rank,
                 shape.ranks, shape.rank);
    }
    engine_of(exchange).leave_out(static_cast<std::size_t>(rank));
  });
}

int weft_moe_rejoin(weft_moe_t exchange) {
  return guarded("weft_moe_rejoin", [&] { engine_of(exchange).rejoin(); });
}

// ---- In GPU memory

int weft_moe_sources_on_stream(
    weft_moe_t exchange, const void* plan, int32_t* ranks, int32_t* tokens, weft_stream_t stream) {
  return guarded("weft_moe_sources_on_stream", [&] {
    const engine::Plan of{nullptr, const_cast<void*>(plan)};  // only read
    engine_in(WEFT_MOE_DEVICE, exchange).sources({ranks, tokens, stream}, of);
  });
}

int weft_moe_count_destinations_on_stream(const weft_moe_destinations* destinations,
                                          weft_stream_t stream) {
  return guarded("weft_moe_count_destinations_on_stream", [&] {
    require_given("destinations", destinations);
    engine::require_destinations(*destinations);
    engine::count_destinations(*destinations, stream);
  });
}

int weft_moe_row_routes_on_stream(weft_moe_t exchange,
                                  const weft_moe_rows* rows,
                                  const weft_moe_row_routes* routes,
                                  weft_stream_t stream) {
  return guarded("weft_moe_row_routes_on_stream", [&] {
    require_given("rows", rows);
    require_given("routes", routes);
    engine_in(WEFT_MOE_DEVICE, exchange).row_routes(*rows, *routes, stream);
  });
}

int weft_moe_set_blocks(weft_moe_t exchange, int blocks) {
  return guarded("weft_moe_set_blocks", [&] {
    if (blocks < 0) {
      weft::fail(weft::Status::InvalidArgument,
                 "blocks is {}; give a number of blocks, or 0 for all", blocks);
    }
    engine_in(WEFT_MOE_DEVICE, exchange).set_blocks(blocks);
  });
}

int weft_moe_dispatch_on_stream(weft_moe_t exchange,
                                weft_moe_phase phase,
                                const weft_moe_tokens* tokens,
                                weft_moe_rows* rows,
                                void* plan,
                                weft_stream_t stream) {
  return guarded("weft_moe_dispatch_on_stream", [&] {
    engine::Plan filled{nullptr, plan};
    engine_in(WEFT_MOE_DEVICE, exchange).dispatch({phase, tokens, rows, stream}, filled);
  });
}

int weft_moe_combine_on_stream(weft_moe_t exchange,
                               weft_moe_phase phase,
                               void* plan,
                               const weft_moe_outputs* outputs,
                               void* out,
                               weft_stream_t stream) {
  return guarded("weft_moe_combine_on_stream", [&] {
    require_given("outputs", outputs);
    engine_in(WEFT_MOE_DEVICE, exchange).combine({phase, outputs, out, stream}, {nullptr, plan});
  });
}

int weft_moe_refuse_on_stream(weft_moe_t exchange, weft_moe_step step, weft_stream_t stream) {
  return guarded("weft_moe_refuse_on_stream",
                 [&] { engine_in(WEFT_MOE_DEVICE, exchange).refuse({step, "", stream}); });
}

int weft_moe_check(weft_moe_t exchange) {
  return guarded("weft_moe_check", [&] { engine_in(WEFT_MOE_DEVICE, exchange).check(); });
}
