#include "src/moe/exchange.hpp"

#include <algorithm>
#include <cstring>

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

Channel::IfLost if_lost(const weft_moe_config& config) {
  return config.on_timeout == WEFT_MOE_ERROR ? Channel::IfLost::End : Channel::IfLost::FullTime;
}

}  // namespace

Shapes::Shapes(const weft_moe_config& config, std::size_t ranks) {
  const auto tokens = static_cast<std::size_t>(config.max_tokens);
  const auto topk = static_cast<std::size_t>(config.topk);
  const std::size_t generations = config.layout == WEFT_MOE_RANK_MAJOR ? 3 : 2;
  dispatch = {row_layout(config).bytes(), first_rows(tokens), ranks * tokens, generations};
  weights = {topk * sizeof(float), first_rows(tokens), ranks * tokens};
  combine = {row_bytes_of(config.output, static_cast<std::size_t>(config.hidden)),
             first_rows(tokens), tokens * topk};
}

std::size_t Shapes::bytes(std::size_t ranks) const {
  return Channel::bytes(ranks, dispatch) + Channel::bytes(ranks, weights) +
         Channel::bytes(ranks, combine);
}

Exchange::Exchange(const weft_moe_config& config, std::byte* memory)
    : config_(config),
      ranks_(config.team),
      map_{config.experts, static_cast<std::int32_t>(ranks_.count())},
      row_(row_layout(config)),
      memory_(memory),
      output_bytes_(row_bytes_of(config.output, static_cast<std::size_t>(config.hidden))),
      shapes_(config, ranks_.count()),
      dispatch_(ranks_, shapes_.dispatch, memory),
      weights_(ranks_, shapes_.weights, memory + Channel::bytes(ranks_.count(), shapes_.dispatch)),
      combine_(ranks_,
               shapes_.combine,
               memory + Channel::bytes(ranks_.count(), shapes_.dispatch) +
                   Channel::bytes(ranks_.count(), shapes_.weights)),
      placement_(config_, map_, row_, ranks_.me),
      active_(ranks_.count(), true) {}

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
  if (!broken_.empty()) {
    fail(Status::InvalidArgument, "the exchange is broken, make a new one: {}", broken_);
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
    refuse_at(dispatch_, text);
  } else {
    refuse_at(combine_, text);
  }
}

void Exchange::refuse_at(Channel& channel, std::string_view text) {
  Message message{.rows = -1};
  std::strncpy(message.refusal.data(), std::string(text).c_str(), message.refusal.size() - 1);
  channel.begin();
  for (std::size_t i = 0; i < ranks_.count(); ++i) {
    if (active_[nth_peer(i)]) {
      channel.send(nth_peer(i), message, 0, [](std::size_t /*row*/, std::byte* /*dest*/) {});
    }
  }
  const auto missing = channel.wait(active_, config_.timeout_s, if_lost(config_));
  if (!missing.empty() && config_.on_timeout == WEFT_MOE_ERROR) {
    broken_ = fmt::format("{} did not come within {} s", ranks_.names(missing), config_.timeout_s);
  }
  drop(missing);
}

void Exchange::drop(const std::vector<std::size_t>& missing) {
  for (const std::size_t rank : missing) {
    active_[rank] = false;
    dispatch_.drop(rank);
    weights_.drop(rank);
    combine_.drop(rank);
  }
}

void Exchange::receive(Channel& channel, std::string_view step, std::int32_t mode) {
  step_ = Step::Idle;
  const std::vector<std::size_t> missing =
      channel.wait(active_, config_.timeout_s, if_lost(config_));
  drop(missing);
  if (!missing.empty() && config_.on_timeout == WEFT_MOE_ERROR) {
    broken_ = fmt::format(
        "{}: nothing came from {} of {} within {} s; look at what these PEs do, or raise the "
        "timeout",
        step, ranks_.names(missing), ranks_.count(), config_.timeout_s);
    fail(Status::Timeout, "{}", broken_);
  }
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (active_[rank]) {
      check_message(channel, rank, mode);
    }
  }
}

void Exchange::check_message(const Channel& channel, std::size_t rank, std::int32_t mode) const {
  const Message& message = channel.message(rank);
  if (message.rows < 0) {
    fail(Status::Mismatch, "PE {} could not take part: {}", ranks_.pes[rank],
         message.refusal.data());
  }
  if (message.mode != mode) {
    fail(Status::Mismatch,
         "PE {} asks for another precision or weighting than this PE; give the same on all PEs",
         ranks_.pes[rank]);
  }
}

}  // namespace weft::moe::engine
