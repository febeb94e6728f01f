#include "moe/src/cpu/node_sums.hpp"

#include <algorithm>
#include <cstring>

#include "moe/src/plan/element.hpp"

namespace weft::moe::engine {
namespace {

std::size_t sum_bytes_of(const weft_moe_config& config) {
  std::size_t bytes = 0;
  with_type(config.output,
            [&]<typename Type>(Type /*type*/) { bytes = sizeof(typename Type::Sum); });
  return bytes * static_cast<std::size_t>(config.hidden);
}

// In rows of the output.
std::size_t source_rows(const weft_moe_config& config, const Groups& groups) {
  const auto tokens = static_cast<std::size_t>(config.max_tokens);
  const auto topk = static_cast<std::size_t>(config.topk);
  const std::size_t row = row_bytes_of(config.output, static_cast<std::size_t>(config.hidden));
  return tokens * std::max(topk, std::min(topk, groups.mates_max()) * (sum_bytes_of(config) / row));
}

ChannelShape parts_shape(const weft_moe_config& config, const Groups& groups) {
  return {row_bytes_of(config.output, static_cast<std::size_t>(config.hidden)), 0,
          groups.sources_max() * source_rows(config, groups)};
}

constexpr ChannelShape kNoRows{};

Inlets mates_alone(const Ranks& ranks, const Groups& groups) {
  Inlets inlets(ranks.count());
  for (const std::size_t mate : groups.mates()) {
    inlets[mate] = {{static_cast<std::size_t>(ranks.me), mate}};
  }
  return inlets;
}

// Calls visit(row of the message, mate) for all parts: of sums once for each rank, ascending; else
// for each lane.
template <typename Visit>
void for_parts(const Arrived& from, std::size_t topk, bool is_sum, Visit&& visit) {
  std::vector<std::int32_t> mates;
  for (std::size_t row = 0; row * topk < from.mates.size(); ++row) {
    const auto begin = from.mates.begin() + static_cast<std::ptrdiff_t>(row * topk);
    mates.assign(begin, begin + static_cast<std::ptrdiff_t>(topk));
    std::erase(mates, -1);
    if (is_sum) {
      std::ranges::sort(mates);
      mates.erase(std::unique(mates.begin(), mates.end()), mates.end());
    }
    for (const std::int32_t mate : mates) {
      visit(row, static_cast<std::size_t>(mate));
    }
  }
}

}  // namespace

NodeSums::NodeSums(const weft_moe_config& config,
                   const Ranks& ranks,
                   const Groups& groups,
                   std::byte* memory)
    : ranks_(ranks),
      groups_(groups),
      output_(config.output),
      hidden_(static_cast<std::size_t>(config.hidden)),
      topk_(static_cast<std::size_t>(config.topk)),
      row_bytes_(row_bytes_of(config.output, hidden_)),
      sum_bytes_(sum_bytes_of(config)),
      source_rows_(source_rows(config, groups)),
      parts_there_(ranks, parts_shape(config, groups), mates_alone(ranks, groups), memory),
      sums_sent_(ranks,
                 kNoRows,
                 mates_alone(ranks, groups),
                 memory + Channel::bytes(ranks.count(), parts_shape(config, groups))) {}

std::size_t NodeSums::bytes(const weft_moe_config& config,
                            const Groups& groups,
                            std::size_t ranks) {
  return Channel::bytes(ranks, parts_shape(config, groups)) + Channel::bytes(ranks, kNoRows);
}

void NodeSums::begin() {
  parts_there_.begin();
  sums_sent_.begin();
}

// Where the part of each rank of the node begins.
std::vector<std::byte*> NodeSums::begins(const Arrived& from,
                                         std::size_t source,
                                         bool is_sum) const {
  std::vector<std::size_t> counts(groups_.mates().size());
  for_parts(from, topk_, is_sum, [&](std::size_t /*row*/, std::size_t mate) { ++counts[mate]; });
  const std::size_t relay = groups_.relays(source, groups_.mates(), parts_there_.call()).front();
  std::byte* next = parts_there_.pool_of(relay, groups_.place_at_relay(source) * source_rows_);
  std::vector<std::byte*> found;
  for (const std::size_t count : counts) {
    found.push_back(next);
    next += count * (is_sum ? sum_bytes_ : row_bytes_);
  }
  return found;
}

std::byte* NodeSums::part(const Arrived& from, std::size_t source, bool is_sum) const {
  return begins(from, source, is_sum)[groups_.index_in_node(static_cast<std::size_t>(ranks_.me))];
}

void NodeSums::announce(Channel& channel, const Message& header) const {
  for (const std::size_t mate : groups_.mates()) {
    channel.send(mate, {&mate, 1}, header, 0, [](std::size_t /*row*/, std::byte* /*dest*/) {});
  }
}

bool NodeSums::sends_to(std::size_t source, const std::vector<bool>& active) const {
  const auto relays = groups_.relays(source, groups_.mates(), parts_there_.call());
  const auto first = std::ranges::find_if(relays, [&](std::size_t rank) { return active[rank]; });
  return first != relays.end() && *first == static_cast<std::size_t>(ranks_.me);
}

// In the order of rows, then of ranks or lanes.
std::vector<NodeSums::Part> NodeSums::parts(const Arrived& from,
                                            const PartialSums& sums,
                                            const std::vector<bool>& active) const {
  std::vector<std::byte*> next = begins(from, sums.source, sums_at_experts(sums.precision));
  std::vector<Part> found;
  for_parts(from, topk_, sums_at_experts(sums.precision), [&](std::size_t row, std::size_t mate) {
    found.push_back({row, active[groups_.mates()[mate]] ? next[mate] : nullptr});
    next[mate] += sums_at_experts(sums.precision) ? sum_bytes_ : row_bytes_;
  });
  return found;
}

void NodeSums::send(Channel& combine,
                    const Arrived& from,
                    PartialSums sums,
                    const std::vector<bool>& active) const {
  const std::vector<Part> found = parts(from, sums, active);
  const std::size_t source = sums.source;
  if (!sums_at_experts(sums.precision)) {
    sums.header.rows = static_cast<std::int32_t>(found.size());
    combine.send(source, {&source, 1}, sums.header, from.reply_exact,
                 [&](std::size_t row, std::byte* dest) {
                   if (found[row].at != nullptr) {
                     std::memcpy(dest, found[row].at, row_bytes_);
                   } else {
                     std::memset(dest, 0, row_bytes_);
                   }
                 });
    return;
  }
  sums.header.rows = static_cast<std::int32_t>(from.mates.size() / topk_);
  with_type(output_, [&]<typename Type>(Type /*type*/) {
    RowSum<Type> sum(hidden_);
    auto next = found.begin();
    combine.send(source, {&source, 1}, sums.header, from.reply_reduced,
                 [&](std::size_t row, std::byte* dest) {
                   sum.clear();
                   for (; next != found.end() && next->row == row; ++next) {
                     if (next->at != nullptr) {
                       sum.add_sums(next->at);
                     }
                   }
                   sum.store_as(sums.precision == WEFT_MOE_FP8, dest);
                 });
  });
}

}  // namespace weft::moe::engine
