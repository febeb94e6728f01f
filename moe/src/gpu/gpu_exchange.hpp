// An exchange in GPU memory: checks arguments on the host, and enqueues the kernels of
// launchers.hpp. Kernels report errors in `Record`; every call here checks it.
//
// Owner, threads: engine.hpp. Invariant: every rank makes the same calls in the same order, so that
// the numbers of the calls agree.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "moe/src/gpu/gpu_memory_checks.hpp"
#include "moe/src/gpu/gpu_shape.hpp"
#include "moe/src/gpu/launchers.hpp"
#include "moe/src/gpu/missing_ranks.hpp"
#include "moe/src/gpu/turns.hpp"
#include "moe/src/plan/engine.hpp"
#include "moe/src/plan/ranks.hpp"
#include "moe/src/plan/timeouts.hpp"
#include "moe/src/plan/validate.hpp"
#include "src/gpu/buffer.hpp"

namespace weft::moe::engine {

inline constexpr std::uintptr_t kAlignment = 16;  // of rows and plans

// Throws what a launch returned, unless it is 0.
void enqueued(int error);

class GpuExchange final : public Engine {
 public:
  // `memory`: symmetric device memory, zeroed, of Shape::bytes; freed by the caller afterwards.
  // Throws if that of a rank of this node is not mapped here.
  GpuExchange(const weft_moe_config& config, std::byte* memory);

  void dispatch(const DispatchCall& call, Plan& plan) override;
  void combine(const CombineCall& call, const Plan& plan) override;
  void refuse(const RefuseCall& call) override;
  void sources(const SourcesCall& call, const Plan& plan) override;
  void row_routes(const weft_moe_rows& rows,
                  const weft_moe_row_routes& routes,
                  weft_stream_t stream) const override;
  void leave_out(std::size_t rank) override;
  void rejoin() override;
  // Throws what the kernels that have ended found.
  void check() override;

  // 0: as many as the GPU has multiprocessors.
  void set_blocks(int blocks) override;

  [[nodiscard]] weft_moe_shape shape() const override;
  [[nodiscard]] std::vector<bool> active() const override;

 private:
  void choose_relays();
  void check_tokens(const weft_moe_tokens& tokens) const;
  void check_rows(const weft_moe_rows& rows) const;
  void check_outputs(const weft_moe_outputs& outputs, const void* out, bool receives) const;
  void show_in_place(weft_moe_rows& rows, std::uint64_t number) const;
  // Throws, after the peers were told, where `check` throws.
  template <typename Check>
  void checked(weft_moe_step step, weft_stream_t stream, Check&& check);
  [[nodiscard]] gpu::Grid grid() const;
  // Enqueues what `launch` enqueues, in turn with other exchanges. Throws what it returns, unless
  // that is 0.
  template <typename Launch>
  void launch(weft_stream_t stream, Launch&& launch);
  [[nodiscard]] gpu::Record& record() const;
  // As the kernels that have ended left it.
  [[nodiscard]] gpu::State state() const;
  void write(const gpu::State& state);
  [[nodiscard]] static std::uint32_t take(std::uint32_t& mark);

  weft_moe_config config_;
  GpuMemoryChecks memory_checks_;
  Ranks ranks_;
  std::byte* memory_;
  weft::gpu::DeviceBuffer state_;
  weft::gpu::DeviceBuffer workspace_;
  weft::gpu::PinnedBuffer record_;
  Timeouts timeouts_;
  MissingRanks missing_;
  gpu::KernelArguments exchange_;
  gpu::Residency held_;
  gpu::Turns turns_;
  int blocks_ = 1;
  int tokens_ = 0;  // of the last dispatch
  Step step_ = Step::Idle;
  std::uint64_t dispatches_ =
      0;  // that were enqueued; kernels that are replayed count for themselves
};

}  // namespace weft::moe::engine
