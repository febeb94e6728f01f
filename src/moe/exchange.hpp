// One exchange of a PE: its sizes, its channels, and which step it is in. dispatch.cpp is the whole of one dispatch,
// combine.cpp that of one combine; placement.cpp places received rows, node_sums.cpp adds up what a node answers together,
// sums.cpp what comes back, attendance.cpp finds out who is missing.
//
// Owner: the program; weft_moe_t points to one. Threads: one at a time.
// Invariant: every rank makes the same calls in the same order, so that the channels' counts of calls agree.
#pragma once

#include <weft/moe.h>
#include <weft/moe/experts.hpp>
#include <weft/moe/row.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/moe/attendance.hpp"
#include "src/moe/channel.hpp"
#include "src/moe/groups.hpp"
#include "src/moe/node_sums.hpp"
#include "src/moe/placement.hpp"
#include "src/moe/ranks.hpp"
#include "src/moe/refusals.hpp"
#include "src/moe/routing.hpp"

namespace weft::moe::engine {

template <typename Type>
class RowSum;

// Who shares messages in an exchange of `config`. `shares_memory`: the ranks of each node have each other's mapped.
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
[[nodiscard]] std::size_t memory_bytes(const weft_moe_config& config);

class Exchange {
 public:
  // `memory`: symmetric and zeroed, memory_bytes; freed by the caller afterwards.
  Exchange(const weft_moe_config& config, bool shares_memory, std::byte* memory);

  void dispatch_send(const weft_moe_tokens& tokens);
  std::unique_ptr<Routing> dispatch_recv(weft_moe_rows& rows);
  void combine_send(const Routing& routing, const weft_moe_outputs& outputs);
  void combine_recv(std::byte* out);
  void refuse(weft_moe_step step, std::string_view text);

  [[nodiscard]] weft_moe_shape shape() const;

  [[nodiscard]] Attendance& attendance() { return attendance_; }

  // Collective over all ranks: they go on with one number, nobody is missing, and what was under way is dropped.
  void rejoin();

 private:
  enum class Step { Idle, Dispatching, Combining };

  using Body = FunctionRef<void()>;

  // The next call of the exchange. Refuses it, and throws again, where `check` throws.
  void begin_call(weft_moe_step step, Body check);
  // A part of a call that waits. If another rank refuses the call, or does something else in it, this one throws that.
  void take_part(Body body);
  // Whether a rank has refused this call; throws Differs if one does something else in it.
  [[nodiscard]] bool has_ended() const;

  // dispatch.cpp
  void send_rows(const weft_moe_tokens& tokens);
  void take_arrived(Routing& routing, std::size_t rank) const;
  // combine.cpp
  void exchange_weights(const Routing& routing, const float* weights);
  template <typename Type>
  void send_outputs(const Routing& routing);
  template <typename Type>
  void add_lanes(const Routing& routing,
                 std::size_t rank,
                 std::size_t slot,
                 RowSum<Type>& sum) const;
  void answer_other_nodes(const Routing& routing, Message header);
  void stay_together();
  void send_answers(const Routing& routing, const Message& answer, std::vector<bool>& answered);

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
  Channel dispatch_;
  Channel weights_;
  Channel combine_;
  Refusals refusals_;
  std::optional<NodeSums> node_sums_;  // where ranks of this node answer together
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
