#include "src/moe/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/error.hpp"
#include "src/moe/element.hpp"

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
  std::vector<int> node_of;
  for (const int pe : ranks.pes) {
    node_of.push_back(weft_node_of(pe));
  }
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
  const bool is_in_place = config.layout == WEFT_MOE_RANK_MAJOR;
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
         Channel::bytes(ranks, combine) + node_sums;
}

std::size_t memory_bytes(const weft_moe_config& config) {
  const Ranks ranks(config.team);
  return Shapes(config, make_groups(config, ranks, true), ranks.count()).bytes(ranks.count());
}

Exchange::Exchange(const weft_moe_config& config, bool shares_memory, std::byte* memory)
    : config_(config),
      ranks_(config.team),
      groups_(make_groups(config, ranks_, shares_memory)),
      map_{config.experts, static_cast<std::int32_t>(ranks_.count())},
      row_(row_layout(config)),
      memory_(memory),
      output_bytes_(row_bytes_of(config.output, static_cast<std::size_t>(config.hidden))),
      shapes_(config, groups_, ranks_.count()),
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
      attendance_(config, ranks_, groups_),
      placement_(config_, map_, row_, ranks_.me) {
  attendance_.tell(dispatch_, true);
  attendance_.tell(weights_, true);
  attendance_.tell(combine_, false);
  if (groups_.mates().size() > 1) {
    node_sums_.emplace(config, ranks_, groups_,
                       memory + shapes_.bytes(ranks_.count()) - shapes_.node_sums);
    attendance_.tell(node_sums_->parts_there(), false);
    attendance_.tell(node_sums_->answered(), false);
  }
}

weft_moe_shape Exchange::shape() const {
  const std::int32_t local = map_.count_of(ranks_.me);
  const std::size_t arrivals = ranks_.count() * static_cast<std::size_t>(config_.max_tokens);
  std::size_t rows = arrivals;
  if (config_.layout == WEFT_MOE_EXPERT_PADDED) {
    rows = arrivals * static_cast<std::size_t>(local);
  } else if (config_.layout == WEFT_MOE_EXPERT_COMPACT) {
    rows = arrivals * static_cast<std::size_t>(std::min(local, config_.topk)) +
           static_cast<std::size_t>(local) * static_cast<std::size_t>(config_.alignment - 1);
  }
  return {.rank = ranks_.me,
          .ranks = static_cast<int>(ranks_.count()),
          .first_expert = map_.first_of(ranks_.me),
          .local_experts = local,
          .payload_bytes = row_.payload_bytes,
          .scale_bytes = row_.scale_bytes,
          .rows_max = rows,
          .memory = memory_,
          .memory_bytes = shapes_.bytes(ranks_.count())};
}

void Exchange::require(Step step, const char* wanted) const {
  if (!attendance_.broken().empty()) {
    fail(Status::InvalidArgument, "the exchange is broken, make a new one: {}",
         attendance_.broken());
  }
  if (step_ != step) {
    const char* now = step_ == Step::Idle          ? "no step is under way"
                      : step_ == Step::Dispatching ? "a dispatch was sent, and not received"
                                                   : "a combine was sent, and not received";
    fail(Status::InvalidArgument, "{}, so {} does not fit here", now, wanted);
  }
}

void Exchange::refuse(weft_moe_step step, std::string_view text) {
  require(Step::Idle, "a refusal");
  if (step == WEFT_MOE_DISPATCH) {
    refuse_rows(dispatch_, text);
    return;
  }
  ++combines_;
  if (step == WEFT_MOE_COMBINE_BY_WEIGHTS) {
    refuse_rows(weights_, text);
  } else {
    refuse_sums(text);
  }
}

void Exchange::rejoin() {
  attendance_.rejoin(config_.team, combines_);
  step_ = Step::Idle;
  outgoing_.reset();
  combining_ = nullptr;
}

Message refusal_of(std::string_view text) {
  Message message{.rows = -1};
  std::strncpy(message.refusal.data(), std::string(text).c_str(), message.refusal.size() - 1);
  return message;
}

void Exchange::refuse_rows(Channel& channel, std::string_view text) {
  channel.begin();
  for (const std::size_t group : groups_.order()) {
    channel.send(group, groups_.relays(me(), groups_.ranks(group), channel.call()),
                 refusal_of(text), 0, [](std::size_t /*row*/, std::byte* /*dest*/) {});
  }
  attendance_.absorb(channel, "a refusal");
}

}  // namespace weft::moe::engine
