// One dispatch, from the caller's tokens to the expert's rows:
//
//   send     ids -> slots (routing.cpp) -> for each rank of this node, and each other rank or node
//            (groups.cpp): header, then its tokens' rows in slot order (channel.cpp)
//   receive  wait for one message of each rank, and meanwhile, of each that is here, its ids and
//            weights; in rank_major its rows -> places of all rows (placement.cpp)
#include <algorithm>
#include <cstring>

#include "moe/src/cpu/exchange.hpp"
#include "moe/src/cpu/payload.hpp"
#include "moe/src/plan/element.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {

void CpuExchange::check_tokens(const weft_moe_tokens& tokens) const {
  require_tokens(config_, tokens);
  if (tokens.count > 0 && (tokens.x == nullptr || tokens.topk_ids == nullptr)) {
    fail(Status::InvalidArgument, "x or topk_ids is missing; give both, or 0 tokens");
  }
  const bool is_ready = tokens.type == config_.payload;
  if (tokens.count > 0 && is_ready && row_.scale_bytes > 0 && tokens.scales == nullptr) {
    fail(Status::InvalidArgument, "x is {} already, so its scales are needed; give them",
         name_of(tokens.type));
  }
  const auto count = static_cast<std::size_t>(tokens.count) * row_.topk;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_allowed(tokens.topk_ids[i], config_.experts)) {
      fail(Status::InvalidArgument,
           "topk_ids[{}, {}] is {}, and there are {} experts; give ids from 0 to {}, or -1 for no "
           "route",
           i / row_.topk, i % row_.topk, tokens.topk_ids[i], config_.experts, config_.experts - 1);
    }
  }
}

void CpuExchange::dispatch_send(const weft_moe_tokens& tokens) {
  require(Step::Idle, "a dispatch");
  begin_call(WEFT_MOE_DISPATCH, [&] { check_tokens(tokens); });
  auto routing = std::make_unique<Routing>();
  routing->map = map_;
  routing->topk = config_.topk;
  routing->tokens = static_cast<std::size_t>(tokens.count);
  const std::size_t lanes = routing->tokens * row_.topk;
  routing->ids.resize(lanes);
  std::transform(tokens.topk_ids, tokens.topk_ids + lanes, routing->ids.begin(),
                 [](std::int64_t id) { return static_cast<std::int32_t>(id); });
  // Without tokens there is nothing that combine could miss.
  routing->has_weights = tokens.topk_weights != nullptr || tokens.count == 0;
  if (routing->has_weights) {
    routing->weights.assign(tokens.topk_weights, tokens.topk_weights + lanes);
  }
  find_slots(*routing, groups_);
  outgoing_ = std::move(routing);
  send_rows(tokens);
  step_ = Step::Dispatching;
}

void CpuExchange::send_rows(const weft_moe_tokens& tokens) {
  const Payload payload(config_, tokens);
  const Routing& routing = *outgoing_;
  dispatch_.begin();
  for (const std::size_t group : groups_.order()) {
    const Sent& sent = routing.sent[group];
    const std::vector<std::size_t>& ranks = groups_.ranks(group);
    const Message header{.rows = static_cast<std::int32_t>(sent.tokens.size()),
                         .mode = mode_,
                         .reply_reduced = sent.reply_reduced,
                         .reply_exact = sent.reply_exact,
                         .exchange_call = refusals_.exchange_call()};
    const std::size_t place = me() * static_cast<std::size_t>(config_.max_tokens) +
                              (ranks.size() > 1 ? shapes_.shared_at : 0);
    const auto write = [&](std::size_t slot, std::byte* dest) {
      const auto token = static_cast<std::size_t>(sent.tokens[slot]);
      std::memcpy(dest, payload.row(token), row_.payload_bytes);
      if (row_.scale_bytes > 0) {
        std::memcpy(dest + row_.scales_at(), payload.scales(token), row_.scale_bytes);
      }
      std::memcpy(dest + row_.ids_at(), routing.route(token).ids, row_.topk * sizeof(std::int32_t));
      if (routing.has_weights) {
        std::memcpy(dest + row_.weights_at(), &routing.weights[token * row_.topk],
                    row_.topk * sizeof(float));
      } else {
        std::memset(dest + row_.weights_at(), 0, row_.topk * sizeof(float));
      }
      std::memcpy(dest + row_.token_at(), &sent.tokens[slot], sizeof(std::int32_t));
    };
    dispatch_.send(group, groups_.relays(me(), ranks, dispatch_.call()), header, place, write);
  }
}

std::shared_ptr<const Routing> CpuExchange::dispatch_recv(weft_moe_rows& rows) {
  require(Step::Dispatching, "the receive of a dispatch");
  step_ = Step::Idle;
  std::unique_ptr<Routing> routing = std::move(outgoing_);
  routing->arrived.resize(ranks_.count());
  std::vector<std::size_t> places;
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    places.push_back(place_of(rank));
  }
  const Arrivals arrivals{dispatch_, places};
  placement_.begin(dispatch_, rows);
  take_part([&] {
    attendance_.receive(dispatch_, fmt::format("dispatch {}", dispatch_.call()), mode_,
                        [&](std::size_t rank) {
                          take_arrived(*routing, rank);
                          placement_.take(arrivals, *routing, rank, rows);
                        });
  });
  timeouts_.completed();
  placement_.place(arrivals, *routing, rows);
  return routing;
}

// Of a message that the whole node reads, the rows that have an expert here.
void CpuExchange::take_arrived(Routing& routing, std::size_t rank) const {
  const Message& message = dispatch_.message(rank);
  WEFT_CHECK(message.rows <= config_.max_tokens, "{} rows of rank {}, of {}", message.rows, rank,
             config_.max_tokens);
  Arrived& from = routing.arrived[rank];
  from.reply_reduced = message.reply_reduced;
  from.reply_exact = message.reply_exact;
  std::vector<std::int32_t> ids(row_.topk);
  std::vector<float> weights(row_.topk);
  for (std::int32_t number = 0; number < message.rows; ++number) {
    const std::byte* row = dispatch_.row(rank, static_cast<std::size_t>(number), place_of(rank));
    std::memcpy(ids.data(), row + row_.ids_at(), row_.topk * sizeof(std::int32_t));
    const Route route{ids.data(), config_.topk};
    if (groups_.is_shared(rank)) {
      add_mates(route, map_, groups_, from.mates);
    }
    if (!groups_.is_shared(rank) || goes_to(route, map_, ranks_.me)) {
      std::memcpy(weights.data(), row + row_.weights_at(), row_.topk * sizeof(float));
      from.row.push_back(number);
      std::memcpy(&from.tokens.emplace_back(), row + row_.token_at(), sizeof(std::int32_t));
      from.ids.insert(from.ids.end(), ids.begin(), ids.end());
      from.weights.insert(from.weights.end(), weights.begin(), weights.end());
    }
  }
  from.rows = from.row.size();
}

}  // namespace weft::moe::engine
