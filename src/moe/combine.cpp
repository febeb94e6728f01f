// One combine, from the experts' outputs to one sum for each token:
//
//   send     the weights, where they are given only now -> for each rank: its rows, in slot order, reduced or one for
//            each expert -> to where the source said in its dispatch (reply_reduced, reply_exact)
//   receive  wait for one message of each rank -> sums in a fixed order: ranks ascending, or lanes ascending
#include <algorithm>
#include <cstring>

#include "src/base/error.hpp"
#include "src/moe/element.hpp"
#include "src/moe/exchange.hpp"

namespace weft::moe::engine {
namespace {

std::int32_t mode_of(const weft_moe_outputs& outputs) {
  return static_cast<std::int32_t>(outputs.precision) * 16 +
         static_cast<std::int32_t>(outputs.weighting);
}

}  // namespace

void Exchange::check_outputs(const Routing& routing, const weft_moe_outputs& outputs) const {
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
  if (placement_.is_by_rank() &&
      (outputs.precision != WEFT_MOE_REDUCED || outputs.weighting != WEFT_MOE_UNWEIGHTED)) {
    fail(Status::InvalidArgument,
         "rows by rank are reduced by the caller, so combine takes no weights and precision "
         "'reduced' alone; use an expert layout for others");
  }
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

void Exchange::combine_send(const Routing& routing, const weft_moe_outputs& outputs) {
  require(Step::Idle, "a combine");
  ++combines_;
  try {
    check_outputs(routing, outputs);
  } catch (const Error& error) {
    if (!placement_.is_by_rank() && outputs.weighting == WEFT_MOE_WEIGHTS_GIVEN &&
        outputs.precision == WEFT_MOE_REDUCED) {
      refuse_at(weights_, error.what());
    } else {
      refuse_at(combine_, error.what());
    }
    throw;
  }
  outputs_ = outputs;
  const float* weights = routing.weights.data();
  if (outputs.weighting == WEFT_MOE_WEIGHTS_GIVEN) {
    given_weights_.assign(outputs.topk_weights, outputs.topk_weights + routing.tokens * row_.topk);
    weights = given_weights_.data();
    if (outputs.precision == WEFT_MOE_REDUCED) {
      exchange_weights(routing, weights);
    }
  }
  outputs_.topk_weights = weights;
  combining_ = &routing;
  combine_.begin();
  with_type(config_.output,
            [&]<typename Type>(Type /*type*/) { send_outputs<Type>(routing, outputs); });
  step_ = Step::Combining;
}

// Each source tells the experts' ranks the weights of its rows.
void Exchange::exchange_weights(const Routing& routing, const float* weights) {
  const auto max_tokens = static_cast<std::size_t>(config_.max_tokens);
  weights_.begin();
  for (std::size_t i = 0; i < ranks_.count(); ++i) {
    const std::size_t rank = nth_peer(i);
    if (!active_[rank]) {
      continue;
    }
    const Sent& sent = routing.sent[rank];
    const Message header{.rows = static_cast<std::int32_t>(sent.tokens.size()),
                         .mode = mode_of(outputs_)};
    weights_.send(rank, header, static_cast<std::size_t>(ranks_.me) * max_tokens,
                  [&](std::size_t slot, std::byte* dest) {
                    const auto token = static_cast<std::size_t>(sent.tokens[slot]);
                    std::memcpy(dest, weights + token * row_.topk, row_.topk * sizeof(float));
                  });
  }
  receive(weights_, fmt::format("combine {} (weights)", combines_), mode_of(outputs_));
}

template <typename Type>
void Exchange::send_outputs(const Routing& routing, const weft_moe_outputs& outputs) {
  const std::size_t stride = outputs.stride == 0 ? output_bytes_ : outputs.stride;
  const auto* rows = static_cast<const std::byte*>(outputs.rows);
  const bool is_reduced = outputs.precision == WEFT_MOE_REDUCED;
  const bool weighs = outputs.weighting != WEFT_MOE_UNWEIGHTED;
  const bool are_given = outputs.weighting == WEFT_MOE_WEIGHTS_GIVEN;
  const auto max_tokens = static_cast<std::size_t>(config_.max_tokens);
  RowSum<Type> sum(static_cast<std::size_t>(config_.hidden));
  for (std::size_t i = 0; i < ranks_.count(); ++i) {
    const std::size_t rank = nth_peer(i);
    const Arrived& from = routing.arrived[rank];
    if (!active_[rank]) {
      continue;
    }
    const auto reduce = [&](std::size_t slot, std::byte* dest) {
      const Route route = routing.route(from, slot);
      const std::int64_t* at = &from.at[slot * row_.topk];
      const auto* weights = &from.weights[slot * row_.topk];
      if (are_given) {
        weights = reinterpret_cast<const float*>(weights_.row(rank, slot, rank * max_tokens));
      }
      sum.clear();
      for (std::int32_t lane = 0; lane < route.topk; ++lane) {
        if (at[lane] >= 0 && weighs) {
          sum.add(rows + static_cast<std::size_t>(at[lane]) * stride, weights[lane]);
        } else if (at[lane] >= 0 && route.is_first(lane)) {
          sum.add(rows + static_cast<std::size_t>(at[lane]) * stride);
        }
      }
      sum.store(dest);
    };
    const auto copy = [&](std::int64_t at, std::byte* dest) {
      std::memcpy(dest, rows + static_cast<std::size_t>(at) * stride, output_bytes_);
    };
    Message header{.rows = static_cast<std::int32_t>(from.rows), .mode = mode_of(outputs)};
    if (placement_.is_by_rank()) {
      combine_.send(rank, header, from.reply_reduced,
                    [&](std::size_t slot, std::byte* dest) { copy(from.at[slot], dest); });
    } else if (is_reduced) {
      combine_.send(rank, header, from.reply_reduced, reduce);
    } else {
      const std::vector<std::int64_t> places = exact_rows(routing, from);
      header.rows = static_cast<std::int32_t>(places.size());
      combine_.send(rank, header, from.reply_exact,
                    [&](std::size_t row, std::byte* dest) { copy(places[row], dest); });
    }
  }
}

// The rows that go back one by one: of each slot, each of its experts here once.
std::vector<std::int64_t> Exchange::exact_rows(const Routing& routing, const Arrived& from) const {
  std::vector<std::int64_t> places;
  for (std::size_t slot = 0; slot < from.rows; ++slot) {
    const Route route = routing.route(from, slot);
    for (std::int32_t lane = 0; lane < route.topk; ++lane) {
      const std::int64_t at = from.at[slot * row_.topk + static_cast<std::size_t>(lane)];
      if (at >= 0 && route.is_first(lane)) {
        places.push_back(at);
      }
    }
  }
  return places;
}

void Exchange::combine_recv(std::byte* out) {
  require(Step::Combining, "the receive of a combine");
  receive(combine_, fmt::format("combine {}", combines_), mode_of(outputs_));
  const Routing& routing = *combining_;
  with_type(config_.output, [&]<typename Type>(Type /*type*/) {
    switch (outputs_.precision) {
      case WEFT_MOE_REDUCED:
        return sum_reduced<Type>(routing, out);
      case WEFT_MOE_EXACT:
        return sum_exact<Type>(routing, out);
      case WEFT_MOE_LANES:
        return copy_lanes(routing, out);
    }
  });
}

// At most one partial sum of each rank, ranks ascending.
template <typename Type>
void Exchange::sum_reduced(const Routing& routing, std::byte* out) const {
  RowSum<Type> sum(static_cast<std::size_t>(config_.hidden));
  for (std::size_t token = 0; token < routing.tokens; ++token) {
    sum.clear();
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
      const Sent& sent = routing.sent[rank];
      const auto number = static_cast<std::int32_t>(token);
      if (active_[rank] && has_token(sent.bits.data(), number)) {
        const auto slot = static_cast<std::size_t>(slot_of(sent.bits.data(), number));
        sum.add(combine_.row(rank, slot, sent.reply_reduced));
      }
    }
    sum.store(out + token * output_bytes_);
  }
}

// Calls visit(token, lane, row) for all lanes with a route to an active rank, in the order of tokens, then lanes.
template <typename Visit>
void Exchange::for_lanes_back(const Routing& routing, Visit&& visit) const {
  std::vector<std::size_t> next(ranks_.count());
  std::vector<const std::byte*> rows(row_.topk);
  for (std::size_t token = 0; token < routing.tokens; ++token) {
    const Route route = routing.route(token);
    for (std::int32_t lane = 0; lane < route.topk; ++lane) {
      if (route.ids[lane] < 0) {
        continue;
      }
      const auto rank = static_cast<std::size_t>(map_.rank_of(route.ids[lane]));
      const auto at = static_cast<std::size_t>(lane);
      if (route.is_first(lane)) {
        rows[at] = active_[rank] ? combine_.row(rank, next[rank]++, routing.sent[rank].reply_exact)
                                 : nullptr;
      } else {
        rows[at] = rows[static_cast<std::size_t>(route.first_lane(lane))];
      }
      if (rows[at] != nullptr) {
        visit(token, lane, rows[at]);
      }
    }
  }
}

template <typename Type>
void Exchange::sum_exact(const Routing& routing, std::byte* out) const {
  const auto hidden = static_cast<std::size_t>(config_.hidden);
  std::memset(out, 0, routing.tokens * output_bytes_);
  RowSum<Type> sum(hidden);
  std::size_t current = 0;
  bool has_rows = false;
  const auto finish = [&] {
    if (has_rows) {
      sum.store(out + current * output_bytes_);
    }
    sum.clear();
    has_rows = false;
  };
  for_lanes_back(routing, [&](std::size_t token, std::int32_t lane, const std::byte* row) {
    if (token != current) {
      finish();
      current = token;
    }
    has_rows = true;
    if (outputs_.weighting != WEFT_MOE_UNWEIGHTED) {
      sum.add(row, outputs_.topk_weights[token * row_.topk + static_cast<std::size_t>(lane)]);
    } else if (routing.route(token).is_first(lane)) {
      sum.add(row);
    }
  });
  finish();
}

void Exchange::copy_lanes(const Routing& routing, std::byte* out) const {
  std::memset(out, 0, routing.tokens * row_.topk * output_bytes_);
  for_lanes_back(routing, [&](std::size_t token, std::int32_t lane, const std::byte* row) {
    std::memcpy(out + (token * row_.topk + static_cast<std::size_t>(lane)) * output_bytes_, row,
                output_bytes_);
  });
}

}  // namespace weft::moe::engine
