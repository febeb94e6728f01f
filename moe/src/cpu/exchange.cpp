#include "moe/src/cpu/exchange.hpp"

#include <weft/moe/layouts.hpp>

#include <algorithm>
#include <array>
#include <string>

#include "moe/src/plan/element.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {
namespace {

// What the fixed place for a header of another node also holds.
constexpr std::size_t kFirstRows = 32;

std::size_t first_rows(std::size_t most) {
  return std::min(kFirstRows, most);
}

RowLayout row_layout(const weft_moe_config& config) {
  const auto hidden = static_cast<std::size_t>(config.hidden);
  return {row_bytes_of(config.payload, hidden), scale_bytes_of(config.scales, hidden),
          static_cast<std::size_t>(config.topk)};
}

// One message of each rank, in the memory of this PE or, from another node, in that of any mate.
Inlets by_rank(const Groups& groups, std::size_t ranks, std::size_t me) {
  Inlets inlets(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    inlets[rank] = {{me, rank}};
    for (const std::size_t mate : groups.mates()) {
      if (groups.is_shared(rank) && mate != me) {
        inlets[rank].push_back({mate, rank});
      }
    }
  }
  return inlets;
}

// One message of each group, in the memory of this PE, from any of its ranks.
Inlets by_group(const Groups& groups, std::size_t me) {
  Inlets inlets(groups.count());
  for (std::size_t group = 0; group < groups.count(); ++group) {
    for (const std::size_t rank : groups.ranks(group)) {
      inlets[group].push_back({me, rank});
    }
  }
  return inlets;
}

}  // namespace

Groups make_groups(const weft_moe_config& config, const Ranks& ranks, bool shares_memory) {
  const std::vector<int> node_of = ranks.nodes();
  const auto me = static_cast<std::size_t>(ranks.me);
  Groups by_node(node_of, me, true);
  const bool can_share = shares_memory && by_node.sources_max() > 0 && by_node.mates_max() > 1 &&
                         by_node.mates_max() <= kMatesMax;
  return can_share && config.row_per != WEFT_MOE_ROW_PER_RANK ? by_node
                                                              : Groups(node_of, me, false);
}

Shapes::Shapes(const weft_moe_config& config, const Groups& groups, std::size_t ranks) {
  const auto tokens = static_cast<std::size_t>(config.max_tokens);
  const auto topk = static_cast<std::size_t>(config.topk);
  const bool is_in_place = moe::is_in_place(config.layout);
  dispatch = {row_layout(config).bytes(), first_rows(tokens), ranks * tokens,
              is_in_place ? std::size_t{3} : 2};
  weights = {topk * sizeof(float), first_rows(tokens), ranks * tokens};
  combine = {row_bytes_of(config.output, static_cast<std::size_t>(config.hidden)),
             first_rows(tokens), tokens * topk};
  if (groups.by_node()) {
    node_sums = NodeSums::bytes(config, groups, ranks);
    // Rows in place are this PE's own, so those that mates read lie beside them.
    shared_at = is_in_place ? ranks * tokens : 0;
    dispatch.pool_rows += shared_at;
  }
}

std::size_t Shapes::bytes(std::size_t ranks) const {
  return Channel::bytes(ranks, dispatch) + Channel::bytes(ranks, weights) +
         Channel::bytes(ranks, combine) + Refusals::bytes(ranks) + node_sums;
}

std::size_t cpu_memory_bytes(const weft_moe_config& config, const Ranks& ranks) {
  return Shapes(config, make_groups(config, ranks, true), ranks.count()).bytes(ranks.count());
}

CpuExchange::CpuExchange(const weft_moe_config& config, bool shares_memory, std::byte* memory)
    : config_(config),
      ranks_(config.team),
      groups_(make_groups(config, ranks_, shares_memory)),
      map_{config.experts, static_cast<std::int32_t>(ranks_.count())},
      row_(row_layout(config)),
      memory_(memory),
      output_bytes_(row_bytes_of(config.output, static_cast<std::size_t>(config.hidden))),
      shapes_(config, groups_, ranks_.count()),
      timeouts_(config),
      dispatch_(ranks_, shapes_.dispatch, by_rank(groups_, ranks_.count(), me()), memory),
      weights_(ranks_,
               shapes_.weights,
               by_rank(groups_, ranks_.count(), me()),
               memory + Channel::bytes(ranks_.count(), shapes_.dispatch)),
      combine_(ranks_,
               shapes_.combine,
               by_group(groups_, me()),
               memory + Channel::bytes(ranks_.count(), shapes_.dispatch) +
                   Channel::bytes(ranks_.count(), shapes_.weights)),
      refusals_(ranks_,
                memory + shapes_.bytes(ranks_.count()) - shapes_.node_sums -
                    Refusals::bytes(ranks_.count())),
      attendance_(config, ranks_, groups_, timeouts_, [this] { return has_ended(); }),
      placement_(config_, map_, row_, ranks_.me) {
  attendance_.tell(dispatch_, true);
  attendance_.tell(weights_, true);
  attendance_.tell(combine_, false);
  attendance_.tell(refusals_.channel(), false);
  refusals_.add(dispatch_, WEFT_MOE_DISPATCH);
  refusals_.add(weights_, WEFT_MOE_COMBINE);
  refusals_.add(combine_, WEFT_MOE_COMBINE);
  if (groups_.mates().size() > 1) {
    node_sums_.emplace(config, ranks_, groups_,
                       memory + shapes_.bytes(ranks_.count()) - shapes_.node_sums);
    attendance_.tell(node_sums_->parts_there(), false);
    attendance_.tell(node_sums_->sums_sent(), false);
    refusals_.add(node_sums_->parts_there(), WEFT_MOE_COMBINE);
    refusals_.add(node_sums_->sums_sent(), WEFT_MOE_COMBINE);
  }
}

weft_moe_shape CpuExchange::shape() const {
  const std::int32_t local = map_.count_of(ranks_.me);
  return {.rank = ranks_.me,
          .ranks = static_cast<int>(ranks_.count()),
          .first_expert = map_.first_of(ranks_.me),
          .local_experts = local,
          .payload_bytes = row_.payload_bytes,
          .scale_bytes = row_.scale_bytes,
          .rows_max = most_rows(config_, ranks_.count(), local),
          .memory = memory_,
          .memory_bytes = shapes_.bytes(ranks_.count())};
}

void CpuExchange::require(Step step, const char* wanted) const {
  if (!attendance_.broken().empty()) {
    fail(Status::InvalidArgument, "the exchange is broken, make a new one: {}",
         attendance_.broken());
  }
  require_step(step_, step, wanted);
}

void CpuExchange::begin_call(weft_moe_step step, Body check) {
  refusals_.begin(step);
  timeouts_.begin(step);
  combines_ += step == WEFT_MOE_COMBINE ? 1 : 0;
  mode_ = 0;
  try {
    check();
  } catch (const Error& error) {
    refusals_.end_call(refusal_of(ranks_, error.what()), attendance_);
    throw;
  }
}

bool CpuExchange::has_ended() const {
  if (refusals_.heard(attendance_.active()) != nullptr) {
    return true;
  }
  // Who waits in one channel for a rank that is in another waits in vain.
  for (const Channel* channel : {&dispatch_, &weights_, &combine_}) {
    channel->for_early([&](const Message& message, std::size_t sender) {
      if (message.exchange_call == refusals_.exchange_call() && message.mode != mode_ &&
          attendance_.is_active(sender)) {
        throw Differs{ranks_.pes[sender]};
      }
    });
  }
  return false;
}

void CpuExchange::take_part(Body body) {
  std::string found;
  try {
    body();
    return;
  } catch (const Ended&) {
  } catch (const Differs& differs) {
    found = fmt::format(
        "PE {} makes another call than PE {}, or asks for another precision or weighting; give the "
        "same on all PEs",
        differs.pe, ranks_.pes[me()]);
  }
  const Message* heard = refusals_.heard(attendance_.active());
  const Message words =
      refusals_.end_call(found.empty() ? *heard : refusal_of(ranks_, found), attendance_);
  if (!found.empty()) {
    fail(Status::Mismatch, "{}", found);
  }
  fail(Status::Mismatch, "PE {} could not take part: {}", words.refuser, words.refusal.data());
}

void CpuExchange::dispatch(const DispatchCall& call, Plan& plan) {
  if (sends(call.phase)) {
    dispatch_send(*call.tokens);
  }
  if (receives(call.phase)) {
    plan.routing = dispatch_recv(*call.rows);
  }
}

void CpuExchange::combine(const CombineCall& call, const Plan& plan) {
  if (sends(call.phase)) {
    combine_send(*plan.routing, *call.outputs);
  }
  if (receives(call.phase)) {
    combine_recv(static_cast<std::byte*>(call.out));
  }
}

void CpuExchange::refuse(const RefuseCall& call) {
  require(Step::Idle, "a refusal");
  begin_call(call.step, [] {});
  refusals_.end_call(refusal_of(ranks_, call.text), attendance_);
}

void CpuExchange::sources(const SourcesCall& call, const Plan& plan) {
  const std::size_t rows = shape().rows_max;
  find_sources(*plan.routing, {{call.ranks, rows}, {call.tokens, rows}});
}

void CpuExchange::set_blocks(int /*blocks*/) {
  fail(Status::InvalidArgument, "an exchange in CPU memory has no blocks");
}

void CpuExchange::row_routes(const weft_moe_rows& /*rows*/,
                             const weft_moe_row_routes& /*routes*/,
                             weft_stream_t /*stream*/) const {
  fail(Status::InvalidArgument, "an exchange in CPU memory enqueues nothing on a stream");
}

void CpuExchange::rejoin() {
  std::array counts{&combines_, &refusals_.exchange_calls()};
  attendance_.rejoin(config_.team, counts);
  step_ = Step::Idle;
  outgoing_.reset();
  combining_ = nullptr;
}

}  // namespace weft::moe::engine
