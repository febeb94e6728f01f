// What an exchange does, on CPUs (cpu/exchange.hpp) or on GPUs (gpu/gpu_exchange.hpp): the
// functions of weft/moe.h behind their checks of handles. Errors: Error.
//
// Owner: the program; weft_moe_t points to one. Threads: one at a time.
// Invariant: every rank makes the same calls in the same order.
#pragma once

#include <weft/device.h>
#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::moe::engine {

struct Routing;

// What a dispatch leaves for combine and for sources: on CPUs the routes, on GPUs memory of the
// caller that kernels fill.
struct Plan {
  std::shared_ptr<const Routing> routing;
  void* memory = nullptr;
};

// `stream` in all calls: GPUs only.

struct DispatchCall {
  weft_moe_phase phase = WEFT_MOE_BOTH;
  const weft_moe_tokens* tokens = nullptr;  // of the send
  weft_moe_rows* rows = nullptr;            // of the receive
  weft_stream_t stream = nullptr;
};

struct CombineCall {
  weft_moe_phase phase = WEFT_MOE_BOTH;
  const weft_moe_outputs* outputs = nullptr;  // of the send; on GPUs also of the receive
  void* out = nullptr;                        // of the receive
  weft_stream_t stream = nullptr;
};

struct RefuseCall {
  weft_moe_step step{};
  const char* text = "";  // on GPUs the peers do not hear it
  weft_stream_t stream = nullptr;
};

struct SourcesCall {
  std::int32_t* ranks = nullptr;
  std::int32_t* tokens = nullptr;
  weft_stream_t stream = nullptr;
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  // The receive fills `plan`; on GPUs both phases do, in plan.memory.
  virtual void dispatch(const DispatchCall& call, Plan& plan) = 0;
  // `plan` outlives both phases.
  virtual void combine(const CombineCall& call, const Plan& plan) = 0;
  virtual void refuse(const RefuseCall& call) = 0;
  virtual void sources(const SourcesCall& call, const Plan& plan) = 0;
  // Both between calls; on GPUs with the streams synchronized.
  virtual void leave_out(std::size_t rank) = 0;
  virtual void rejoin() = 0;
  [[nodiscard]] virtual std::vector<bool> active() const = 0;
  [[nodiscard]] virtual weft_moe_shape shape() const = 0;
  // Throws what calls found that have returned.
  virtual void check() = 0;
  // GPUs only: weft_moe_set_blocks, weft_moe_row_routes_on_stream.
  virtual void set_blocks(int blocks) = 0;
  virtual void row_routes(const weft_moe_rows& rows,
                          const weft_moe_row_routes& routes,
                          weft_stream_t stream) const = 0;
};

inline bool sends(weft_moe_phase phase) {
  return phase != WEFT_MOE_RECEIVE;
}

inline bool receives(weft_moe_phase phase) {
  return phase != WEFT_MOE_SEND;
}

}  // namespace weft::moe::engine
