// One exchange of a PE: its sizes, its channels, and which step it is in. dispatch.cpp is the whole
// of one dispatch, combine.cpp that of one combine; placement.cpp places received rows,
// node_sums.cpp adds up the partial sums of a node, sums.cpp what comes back, attendance.cpp finds
// out who is missing.
//
// Owner, threads: engine.hpp. Invariant: every rank makes the same calls in the same order, so that
// the channels' counts of calls agree.
#pragma once

#include <weft/moe.h>
#include <weft/moe/experts.hpp>
#include <weft/moe/row.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "moe/src/cpu/attendance.hpp"
#include "moe/src/cpu/channel.hpp"
#include "moe/src/cpu/node_sums.hpp"
#include "moe/src/cpu/placement.hpp"
#include "moe/src/cpu/refusals.hpp"
#include "moe/src/cpu/routing.hpp"
#include "moe/src/plan/engine.hpp"
#include "moe/src/plan/groups.hpp"
#include "moe/src/plan/ranks.hpp"
#include "moe/src/plan/timeouts.hpp"
#include "moe/src/plan/validate.hpp"
#include "src/base/function_ref.hpp"

namespace weft::moe::engine {

template <typename Type>
class RowSum;

// Who shares messages in an exchange of `config`. `shares_memory`: the ranks of each node have each
// other's mapped.
[[nodiscard]] Groups make_groups(const weft_moe_config& config,
                                 const Ranks& ranks,
                                 bool shares_memory);

// The shapes of the channels, and so the memory of an exchange.
struct Shapes {
  ChannelShape dispatch;
  ChannelShape weights;
  ChannelShape combine;
  std::size_t node_sums = 0;  // bytes of NodeSums
  std::size_t shared_at = 0;  // in the pool of dispatch: where rows that a whole node reads begin

  Shapes(const weft_moe_config& config, const Groups& groups, std::size_t ranks);
  [[nodiscard]] std::size_t bytes(std::size_t ranks) const;
};

// Of the largest exchange of `config`.
[[nodiscard]] std::size_t cpu_memory_bytes(const weft_moe_config& config, const Ranks& ranks);

class CpuExchange final : public Engine {
 public:
  // `memory`: symmetric and zeroed, cpu_memory_bytes; freed by the caller afterwards.
  CpuExchange(const weft_moe_config& config, bool shares_memory, std::byte* memory);

  void dispatch(const DispatchCall& call, Plan& plan) override;
  void combine(const CombineCall& call, const Plan& plan) override;
  void refuse(const RefuseCall& call) override;
  void sources(const SourcesCall& call, const Plan& plan) override;

  void leave_out(std::size_t rank) override { attendance_.leave_out(rank); }

  // Collective over all ranks: they go on with one number, nobody is missing, and what was under
  // way is dropped.
  void rejoin() override;

  [[nodiscard]] std::vector<bool> active() const override { return attendance_.active(); }

  [[nodiscard]] weft_moe_shape shape() const override;

  void check() override {}  // each call has thrown its own errors

  void set_blocks(int blocks) override;
  void row_routes(const weft_moe_rows& rows,
                  const weft_moe_row_routes& routes,
                  weft_stream_t stream) const override;

 private:
  using Body = FunctionRef<void()>;

  // The next call of the exchange. Refuses it, and throws again, where `check` throws.
  void begin_call(weft_moe_step step, Body check);
  // A part of a call that waits. If another rank refuses the call, or does something else in it,
  // this one throws that.
  void take_part(Body body);
  // Whether a rank has refused this call; throws Differs if one does something else in it.
  [[nodiscard]] bool has_ended() const;

  // dispatch.cpp
  void dispatch_send(const weft_moe_tokens& tokens);
  std::shared_ptr<const Routing> dispatch_recv(weft_moe_rows& rows);
  void send_rows(const weft_moe_tokens& tokens);
  void take_arrived(Routing& routing, std::size_t rank) const;
  // combine.cpp
  void combine_send(const Routing& routing, const weft_moe_outputs& outputs);
  void combine_recv(std::byte* out);
  void exchange_weights(const Routing& routing, const float* weights);
  template <typename Type>
  void send_outputs(const Routing& routing);
  template <typename Type>
  void add_lanes(const Routing& routing,
                 std::size_t rank,
                 std::size_t slot,
                 RowSum<Type>& sum) const;
  void send_to_other_nodes(const Routing& routing, Message header);
  void stay_together();
  void send_partial_sums(const Routing& routing, const Message& header, std::vector<bool>& sent);

  [[nodiscard]] std::size_t me() const { return static_cast<std::size_t>(ranks_.me); }

  // Where the rows of `rank` begin in this PE's pool of a dispatch.
  [[nodiscard]] std::size_t place_of(std::size_t rank) const {
    return rank * static_cast<std::size_t>(config_.max_tokens) +
           (groups_.is_shared(rank) ? shapes_.shared_at : 0);
  }

  void require(Step step, const char* wanted) const;
  void check_tokens(const weft_moe_tokens& tokens) const;
  void check_outputs(const Routing& routing, const weft_moe_outputs& outputs) const;

  weft_moe_config config_;
  Ranks ranks_;
  Groups groups_;
  ExpertMap map_;
  RowLayout row_;
  std::byte* memory_;
  std::size_t output_bytes_;  // of a row of combine
  Shapes shapes_;
  Timeouts timeouts_;
  Channel dispatch_;
  Channel weights_;
  Channel combine_;
  Refusals refusals_;
  std::optional<NodeSums> node_sums_;  // where ranks of this node make partial sums together
  Attendance attendance_;
  Placement placement_;
  std::uint64_t combines_ = 0;
  Step step_ = Step::Idle;
  std::int32_t mode_ = 0;              // of this call; Message::mode
  std::unique_ptr<Routing> outgoing_;  // between the send and the receive of a dispatch
  // Between the send and the receive of a combine.
  const Routing* combining_ = nullptr;
  weft_moe_outputs outputs_{};
  std::vector<float> given_weights_;
};

}  // namespace weft::moe::engine
