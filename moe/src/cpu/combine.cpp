// One combine, from the experts' outputs to one sum for each token:
//
//   send     the weights, where they are given only now -> for each rank: its rows, in slot order,
//            reduced or one for each expert -> to where the source said in its dispatch
//            (reply_reduced, reply_exact); for sources of other nodes, if rows travel by node: to
//            the rank here that sends them their partial sums (node_sums.cpp)
//   receive  wait for the ranks of this node -> send to other nodes -> wait for one message of each
//            rank, or node -> sums in a fixed order: ranks and nodes by their first ranks, or lanes
//            ascending
#include <algorithm>
#include <cstring>

#include "moe/src/cpu/exchange.hpp"
#include "moe/src/cpu/sums.hpp"
#include "moe/src/plan/element.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {
namespace {

// A rank waits for partial sums of other nodes for up to four.
constexpr double kTimeoutsOfMates = 5;

std::int32_t mode_of(const weft_moe_outputs& outputs) {
  return static_cast<std::int32_t>(outputs.precision) * 16 +
         static_cast<std::int32_t>(outputs.weighting);
}

// The rows that go back one by one: of each slot, each of its experts here once.
std::vector<std::int64_t> exact_rows(const Routing& routing, const Arrived& from) {
  std::vector<std::int64_t> places;
  for (std::size_t slot = 0; slot < from.rows; ++slot) {
    const Route route = routing.route(from, slot);
    for (std::int32_t lane = 0; lane < route.topk; ++lane) {
      const std::int64_t at =
          from.at[slot * static_cast<std::size_t>(route.topk) + static_cast<std::size_t>(lane)];
      if (at >= 0 && route.is_first(lane)) {
        places.push_back(at);
      }
    }
  }
  return places;
}

}  // namespace

void CpuExchange::check_outputs(const Routing& routing, const weft_moe_outputs& outputs) const {
  if (routing.map.experts != map_.experts || routing.map.ranks != map_.ranks ||
      routing.topk != config_.topk || routing.arrived.size() != ranks_.count()) {
    fail(Status::InvalidArgument,
         "the plan is of another exchange; give the plan of a dispatch on this one");
  }
  std::size_t rows = 0;
  for (const Arrived& from : routing.arrived) {
    rows += from.rows;
  }
  if (outputs.rows == nullptr && rows > 0) {
    fail(Status::InvalidArgument, "expert_out is missing, and {} rows were dispatched here", rows);
  }
  require_sum(config_, outputs);
  if (outputs.weighting == WEFT_MOE_WEIGHTS_OF_DISPATCH && !routing.has_weights) {
    fail(Status::InvalidArgument,
         "topk_weights are missing: neither dispatch nor combine got them; give them to one of "
         "both, or ask for a sum without weights");
  }
  if (outputs.weighting == WEFT_MOE_WEIGHTS_GIVEN && outputs.topk_weights == nullptr &&
      routing.tokens > 0) {
    fail(Status::InvalidArgument, "topk_weights are missing; give [tokens, topk] of float32");
  }
}

void CpuExchange::combine_send(const Routing& routing, const weft_moe_outputs& outputs) {
  require(Step::Idle, "a combine");
  begin_call(WEFT_MOE_COMBINE, [&] { check_outputs(routing, outputs); });
  outputs_ = outputs;
  mode_ = mode_of(outputs);
  outputs_.stride = outputs.stride == 0 ? output_bytes_ : outputs.stride;
  const float* weights = routing.weights.data();
  if (outputs.weighting == WEFT_MOE_WEIGHTS_GIVEN) {
    given_weights_.assign(outputs.topk_weights, outputs.topk_weights + routing.tokens * row_.topk);
    weights = given_weights_.data();
    if (sums_at_experts(outputs.precision)) {
      take_part([&] { exchange_weights(routing, weights); });
    }
  }
  outputs_.topk_weights = weights;
  combining_ = &routing;
  combine_.begin(partial_sum_bytes_of(config_.output, static_cast<std::size_t>(config_.hidden),
                                      outputs.precision));
  if (node_sums_.has_value()) {
    node_sums_->begin();
  }
  with_type(config_.output, [&]<typename Type>(Type /*type*/) { send_outputs<Type>(routing); });
  if (node_sums_.has_value()) {
    node_sums_->announce(node_sums_->parts_there(), {.mode = mode_});
  }
  step_ = Step::Combining;
}

// Each source tells the experts' ranks the weights of its rows.
void CpuExchange::exchange_weights(const Routing& routing, const float* weights) {
  weights_.begin();
  for (const std::size_t group : groups_.order()) {
    const Sent& sent = routing.sent[group];
    const Message header{.rows = static_cast<std::int32_t>(sent.tokens.size()),
                         .mode = mode_,
                         .exchange_call = refusals_.exchange_call()};
    weights_.send(group, groups_.relays(me(), groups_.ranks(group), weights_.call()), header,
                  me() * static_cast<std::size_t>(config_.max_tokens),
                  [&](std::size_t slot, std::byte* dest) {
                    const auto token = static_cast<std::size_t>(sent.tokens[slot]);
                    std::memcpy(dest, weights + token * row_.topk, row_.topk * sizeof(float));
                  });
  }
  attendance_.receive(weights_, fmt::format("combine {} (weights)", combines_), mode_);
}

// The sum of this rank's experts for one row.
template <typename Type>
void CpuExchange::add_lanes(const Routing& routing,
                            std::size_t rank,
                            std::size_t slot,
                            RowSum<Type>& sum) const {
  const auto* rows = static_cast<const std::byte*>(outputs_.rows);
  const Arrived& from = routing.arrived[rank];
  sum.clear();
  if (placement_.is_by_rank()) {
    sum.add(rows + static_cast<std::size_t>(from.at[slot]) * outputs_.stride);
    return;
  }
  const Route route = routing.route(from, slot);
  const std::int64_t* at = &from.at[slot * row_.topk];
  const float* weights = &from.weights[slot * row_.topk];
  if (outputs_.weighting == WEFT_MOE_WEIGHTS_GIVEN) {
    weights = reinterpret_cast<const float*>(
        weights_.row(rank, static_cast<std::size_t>(from.row[slot]),
                     rank * static_cast<std::size_t>(config_.max_tokens)));
  }
  const bool weighs = outputs_.weighting != WEFT_MOE_UNWEIGHTED;
  for (std::int32_t lane = 0; lane < route.topk; ++lane) {
    if (at[lane] >= 0 && weighs) {
      sum.add(rows + static_cast<std::size_t>(at[lane]) * outputs_.stride, weights[lane]);
    } else if (at[lane] >= 0 && route.is_first(lane)) {
      sum.add(rows + static_cast<std::size_t>(at[lane]) * outputs_.stride);
    }
  }
}

template <typename Type>
void CpuExchange::send_outputs(const Routing& routing) {
  const auto* rows = static_cast<const std::byte*>(outputs_.rows);
  const bool is_sum = sums_at_experts(outputs_.precision);
  const bool is_fp8 = outputs_.precision == WEFT_MOE_FP8;
  RowSum<Type> sum(static_cast<std::size_t>(config_.hidden));
  for (const std::size_t rank : groups_.peers()) {
    if (!attendance_.is_active(rank)) {
      continue;
    }
    const Arrived& from = routing.arrived[rank];
    const std::vector<std::int64_t> places =
        is_sum ? std::vector<std::int64_t>{} : exact_rows(routing, from);
    const std::size_t count = is_sum ? from.rows : places.size();
    const auto write = [&](std::size_t row, std::byte* dest) {
      if (!is_sum) {
        std::memcpy(dest, rows + static_cast<std::size_t>(places[row]) * outputs_.stride,
                    output_bytes_);
      } else if (placement_.is_by_rank() && !is_fp8) {
        std::memcpy(dest, rows + static_cast<std::size_t>(from.at[row]) * outputs_.stride,
                    output_bytes_);
      } else {
        add_lanes<Type>(routing, rank, row, sum);
        sum.store_as(is_fp8, dest);
      }
    };
    if (groups_.is_shared(rank)) {
      std::byte* part = node_sums_->part(from, rank, is_sum);
      for (std::size_t row = 0; row < count; ++row) {
        if (is_sum) {
          add_lanes<Type>(routing, rank, row, sum);
          sum.store_sums(part + row * sum.bytes());
        } else {
          write(row, part + row * output_bytes_);
        }
      }
      continue;
    }
    const Message header{.rows = static_cast<std::int32_t>(count),
                         .mode = mode_,
                         .exchange_call = refusals_.exchange_call()};
    combine_.send(rank, {&rank, 1}, header, is_sum ? from.reply_reduced : from.reply_exact, write);
  }
}

void CpuExchange::combine_recv(std::byte* out) {
  require(Step::Combining, "the receive of a combine");
  step_ = Step::Idle;
  const Routing& routing = *combining_;
  take_part([&] {
    send_to_other_nodes(routing, {.mode = mode_, .exchange_call = refusals_.exchange_call()});
    attendance_.throw_if_broken();
    stay_together();
    attendance_.receive_groups(combine_, fmt::format("combine {}", combines_), mode_);
  });
  timeouts_.completed();
  const SumsOf what{config_.output, static_cast<std::size_t>(config_.hidden)};
  Sums(what, {groups_, attendance_, combine_}, routing, outputs_).write(out);
}

// Once all ranks of this node have put their parts: sends the partial sums for which this rank
// stands. A rank may be lost between its part and those, so with WEFT_MOE_MASK the ranks of the
// node then wait for each other, and send for who does not come.
void CpuExchange::send_to_other_nodes(const Routing& routing, Message header) {
  if (!node_sums_.has_value()) {
    return;
  }
  const std::string name = fmt::format("combine {}", combines_);
  std::vector<bool> sent(ranks_.count());
  attendance_.receive_mates(node_sums_->parts_there(), name);
  for (const std::size_t mate : groups_.mates()) {
    if (attendance_.is_active(mate) && node_sums_->parts_there().message(mate).mode != mode_) {
      throw Differs{ranks_.pes[mate]};
    }
  }
  header.missing = attendance_.missing_mates();
  send_partial_sums(routing, header, sent);
  if (config_.on_timeout == WEFT_MOE_MASK) {
    node_sums_->announce(node_sums_->sums_sent(), {.mode = mode_});
    attendance_.receive_mates(node_sums_->sums_sent(), name);
    header.missing = attendance_.missing_mates();
    send_partial_sums(routing, header, sent);
  }
}

// With WEFT_MOE_MASK: waits for the partial sums, and until all ranks of this node have theirs. One
// whose partial sums come late, because another rank had to send it, would else begin the next call
// too late for those that had theirs in time; and who knows of a lost rank would not wait for it
// where others still do.
void CpuExchange::stay_together() {
  if (config_.on_timeout != WEFT_MOE_MASK || !node_sums_.has_value()) {
    return;
  }
  const std::string name = fmt::format("combine {}", combines_);
  attendance_.absorb_groups(combine_, name);
  node_sums_->sums_sent().begin();
  node_sums_->announce(node_sums_->sums_sent(), {.missing = attendance_.missing_bits()});
  attendance_.receive_mates(node_sums_->sums_sent(), name, kTimeoutsOfMates);
  for (const std::size_t mate : groups_.mates()) {
    if (attendance_.is_active(mate)) {
      attendance_.leave_out(node_sums_->sums_sent().message(mate).missing, name);
    }
  }
}

// To all sources for which this rank stands now, and that have nothing of it.
void CpuExchange::send_partial_sums(const Routing& routing,
                                    const Message& header,
                                    std::vector<bool>& sent) {
  const bool has_rows = attendance_.broken().empty();
  for (const std::size_t source : groups_.peers()) {
    if (!groups_.is_shared(source) || !attendance_.is_active(source) || sent[source] ||
        !node_sums_->sends_to(source, attendance_.active())) {
      continue;
    }
    sent[source] = true;
    if (has_rows) {
      node_sums_->send(combine_, routing.arrived[source], {source, header, outputs_.precision},
                       attendance_.active());
    } else {
      combine_.send(source, {&source, 1}, header, 0,
                    [](std::size_t /*row*/, std::byte* /*dest*/) {});
    }
  }
}

}  // namespace weft::moe::engine
