// An exchange in GPU memory: checks arguments on the host, and enqueues the kernels of gpu/moe.hpp. What kernels find out,
// they leave in a record that each call here reads.
//
// Owner: the program; weft_moe_t points to one. Threads: one at a time.
// Invariant: every rank makes the same calls in the same order, so that the numbers of the calls agree.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/gpu/buffer.hpp"
#include "src/gpu/moe.hpp"
#include "src/moe/gpu_memory_checks.hpp"
#include "src/moe/gpu_shape.hpp"
#include "src/moe/ranks.hpp"

namespace weft::moe::engine {

inline constexpr std::uintptr_t kAlignment = 16;  // of rows and plans

// Throws what a launch returned, unless it is 0.
void enqueued(int error);

// Checks the arrays, and enqueues the kernel. The numbers are those that weft/moe.h allows. Needs no exchange.
void count_destinations(const weft_moe_destinations& destinations, weft_stream_t stream);

class GpuExchange {
 public:
  // `memory`: symmetric device memory, zeroed, of Shape::bytes; freed by the caller afterwards. Throws if that of a rank of this
  // node is not mapped here.
  GpuExchange(const weft_moe_config& config, std::byte* memory);

  void dispatch(weft_moe_phase phase,
                const weft_moe_tokens* tokens,
                weft_moe_rows* rows,
                void* plan,
                weft_stream_t stream);
  void combine(weft_moe_phase phase,
               void* plan,
               const weft_moe_outputs& outputs,
               void* out,
               weft_stream_t stream);
  void refuse(weft_moe_step step, weft_stream_t stream);
  void sources(const void* plan, std::int32_t* ranks, std::int32_t* tokens, weft_stream_t stream);
  void row_routes(const weft_moe_rows& rows,
                  const weft_moe_row_routes& routes,
                  weft_stream_t stream) const;
  // Both between calls, with the streams synchronized.
  void leave_out(std::size_t rank);
  void rejoin();
  // Throws what the kernels that have ended found.
  void check();

  // 0: as many as the GPU has multiprocessors.
  void set_blocks(int blocks);

  [[nodiscard]] weft_moe_shape shape() const;
  [[nodiscard]] std::vector<bool> active() const;

 private:
  enum class Step { Idle, Dispatching, Combining };

  void choose_relays();
  void require(Step step, const char* wanted) const;
  void check_tokens(const weft_moe_tokens& tokens) const;
  void check_rows(const weft_moe_rows& rows) const;
  void check_outputs(const weft_moe_outputs& outputs, const void* out, bool receives) const;
  void show_in_place(weft_moe_rows& rows, std::uint64_t number) const;
  // Throws, after the peers were told, where `check` throws.
  template <typename Check>
  void checked(weft_moe_step step, weft_stream_t stream, Check&& check);
  [[nodiscard]] gpu::moe::Grid grid() const;
  [[nodiscard]] gpu::moe::Record& record() const;
  [[nodiscard]] std::uint64_t missing() const;
  // As the kernels that have ended left it.
  [[nodiscard]] gpu::moe::State state() const;
  void write(const gpu::moe::State& state);
  [[nodiscard]] static std::uint32_t take(std::uint32_t& mark);

  weft_moe_config config_;
  GpuMemoryChecks memory_checks_;
  Ranks ranks_;
  std::byte* memory_;
  gpu::DeviceBuffer state_;
  gpu::DeviceBuffer workspace_;
  gpu::PinnedBuffer record_;
  gpu::moe::Exchange exchange_;
  gpu::moe::Residency held_;
  int blocks_ = 1;
  int tokens_ = 0;  // of the last dispatch
  Step step_ = Step::Idle;
  std::uint64_t dispatches_ =
      0;  // that were enqueued; kernels that are replayed count for themselves
};

}  // namespace weft::moe::engine
