// One exchange of a PE: its sizes, its channels, and which step it is in. dispatch.cpp is the whole of one dispatch,
// combine.cpp that of one combine; placement.cpp places received rows.
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
#include <string>
#include <string_view>
#include <vector>

#include "src/moe/channel.hpp"
#include "src/moe/placement.hpp"
#include "src/moe/ranks.hpp"
#include "src/moe/routing.hpp"

namespace weft::moe::engine {

// The shapes of the three channels, and so the memory of an exchange.
struct Shapes {
  ChannelShape dispatch;
  ChannelShape weights;
  ChannelShape combine;

  Shapes(const weft_moe_config& config, std::size_t ranks);
  [[nodiscard]] std::size_t bytes(std::size_t ranks) const;
};

class Exchange {
 public:
  // `memory`: symmetric and zeroed, Shapes::bytes; freed by the caller afterwards.
  Exchange(const weft_moe_config& config, std::byte* memory);

  void dispatch_send(const weft_moe_tokens& tokens);
  std::unique_ptr<Routing> dispatch_recv(weft_moe_rows& rows);
  void combine_send(const Routing& routing, const weft_moe_outputs& outputs);
  void combine_recv(std::byte* out);
  void refuse(weft_moe_step step, std::string_view text);

  [[nodiscard]] weft_moe_shape shape() const;

  [[nodiscard]] const std::vector<bool>& active() const { return active_; }

 private:
  enum class Step { Idle, Dispatching, Combining };

  // dispatch.cpp
  void send_rows(const weft_moe_tokens& tokens);
  void take_arrived(Routing& routing, std::size_t rank) const;
  // combine.cpp
  void exchange_weights(const Routing& routing, const float* weights);
  template <typename Type>
  void send_outputs(const Routing& routing, const weft_moe_outputs& outputs);
  [[nodiscard]] std::vector<std::int64_t> exact_rows(const Routing& routing,
                                                     const Arrived& from) const;
  template <typename Visit>
  void for_lanes_back(const Routing& routing, Visit&& visit) const;
  template <typename Type>
  void sum_reduced(const Routing& routing, std::byte* out) const;
  template <typename Type>
  void sum_exact(const Routing& routing, std::byte* out) const;
  void copy_lanes(const Routing& routing, std::byte* out) const;

  // Ranks after this one first, so that not all send to the same.
  [[nodiscard]] std::size_t nth_peer(std::size_t i) const {
    return (static_cast<std::size_t>(ranks_.me) + i) % ranks_.count();
  }

  void require(Step step, const char* wanted) const;
  void check_tokens(const weft_moe_tokens& tokens) const;
  void check_outputs(const Routing& routing, const weft_moe_outputs& outputs) const;
  void drop(const std::vector<std::size_t>& missing);
  void refuse_at(Channel& channel, std::string_view text);
  // Waits for all active ranks, and throws for those that are missing, that refuse, or that do something else.
  void receive(Channel& channel, std::string_view step, std::int32_t mode);
  void check_message(const Channel& channel, std::size_t rank, std::int32_t mode) const;

  weft_moe_config config_;
  Ranks ranks_;
  ExpertMap map_;
  RowLayout row_;
  std::byte* memory_;
  std::size_t output_bytes_;  // of a row of combine
  Shapes shapes_;
  Channel dispatch_;
  Channel weights_;
  Channel combine_;
  Placement placement_;
  std::vector<bool> active_;
  std::uint64_t dispatches_ = 0;
  std::uint64_t combines_ = 0;
  Step step_ = Step::Idle;
  std::string broken_;                 // why no call works any more
  std::unique_ptr<Routing> outgoing_;  // between the send and the receive of a dispatch
  // Between the send and the receive of a combine.
  const Routing* combining_ = nullptr;
  weft_moe_outputs outputs_{};
  std::vector<float> given_weights_;
};

}  // namespace weft::moe::engine
