#include "src/topology/nic_choice.hpp"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "src/base/error.hpp"
#include "src/base/networks.hpp"

namespace weft::topology {
namespace {

using PeList = std::vector<std::size_t>;
using NicList = std::vector<std::size_t>;

std::string label(const NicCandidate& nic) {
  return nic.address.empty() || nic.address == nic.name
             ? nic.name
             : fmt::format("{} ({})", nic.name, nic.address);
}

// `wanted` is a name, an address or a network.
bool matches(const NicCandidate& nic, const std::string& wanted) {
  if (wanted == nic.name || (!nic.address.empty() && wanted == nic.address)) {
    return true;
  }
  const auto network = Network::parse(wanted);
  return network && network->contains(nic.address);
}

void check(const NicQuestion& question) {
  const NicLimits& limits = question.limits;
  if (limits.rail_count_max < 1 || limits.rail_count_max > kRailCountMax) {
    fail(Status::InvalidArgument, "WEFT_RAIL_COUNT_MAX={}: use 1 to {}", limits.rail_count_max,
         kRailCountMax);
  }
  WEFT_CHECK(question.local_index < question.places.size(), "PE {} of {} on its node",
             question.local_index, question.places.size());
  for (const std::string& wanted : limits.include) {
    const bool exists = std::ranges::any_of(
        question.candidates, [&wanted](const NicCandidate& n) { return matches(n, wanted); });
    if (!exists) {
      std::vector<std::string> labels;
      std::ranges::transform(question.candidates, std::back_inserter(labels), label);
      fail(Status::InvalidArgument,
           "WEFT_NICS={}: no NIC, address or network '{}' here; there are: {}",
           fmt::join(limits.include, ","), wanted,
           labels.empty() ? "none" : fmt::format("{}", fmt::join(labels, ", ")));
    }
  }
}

// What a candidate reaches; smaller is better. Only the best kind available is used, unless
// WEFT_NICS names others.
enum class Reach : std::uint8_t { Network, Bridge, Routed, Internal, Loopback };

Reach reach_of(const Machine& machine, const NicCandidate& nic) {
  if (nic.loopback) {
    return Reach::Loopback;
  }
  const Nic* known = find_nic(machine, nic.name);
  switch (known == nullptr ? NicKind::Net : known->kind) {
    case NicKind::Rdma:
    case NicKind::Net:
      return Reach::Network;
    case NicKind::Bridge:
      return Reach::Bridge;
    case NicKind::Internal:
      return Reach::Internal;
    case NicKind::Loopback:
      // An address that an administrator has put there. It may be one that several hosts share,
      // too, so the NICs' own come first.
      return nic.address.empty() || is_loopback_address(nic.address) ? Reach::Loopback
                                                                     : Reach::Routed;
  }
  return Reach::Network;
}

std::string_view words(Reach reach) {
  switch (reach) {
    case Reach::Network:
      return "network";
    case Reach::Bridge:
      return "a bridge over a NIC";
    case Reach::Routed:
      return "an address on the loopback interface";
    case Reach::Internal:
      return "a bridge to containers or VMs of this machine";
    case Reach::Loopback:
      return "loopback";
  }
  return "?";
}

// The decision for a whole node; the verdicts for one PE are derived from it.
class Node {
 public:
  Node(const Machine& machine, const NicQuestion& question)
      : machine_(machine), question_(question), users_(question.candidates.size()) {
    keep_usable();
    if (question.limits.nics_shared) {
      give_all();
    } else {
      share_claimed();
      share_unclaimed();
    }
  }

  [[nodiscard]] NicChoice choice() const;

 private:
  void keep_usable();
  void give_all();
  void share_claimed();
  void share_unclaimed();
  void share_out(const std::map<PeList, NicList>& groups);
  [[nodiscard]] Distance distance_of(std::size_t pe, std::size_t nic) const;
  [[nodiscard]] Distance nearest_of(std::size_t pe) const;
  [[nodiscard]] std::string why_mine(std::size_t nic, Distance distance) const;
  [[nodiscard]] std::string why_not_mine(std::size_t nic) const;

  const Machine& machine_;
  const NicQuestion& question_;
  NicList usable_;
  std::map<std::size_t, std::string> refusals_;  // for NICs that are not usable
  std::vector<PeList> users_;                    // per NIC, before the limit on rails
};

void Node::keep_usable() {
  const auto& nics = question_.candidates;
  const NicLimits& limits = question_.limits;
  Reach best = Reach::Loopback;
  for (const NicCandidate& nic : nics) {
    best = nic.up ? std::min(best, reach_of(machine_, nic)) : best;
  }
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const Reach reach = reach_of(machine_, nics[i]);
    if (!limits.include.empty() && !is_named(nics[i], limits)) {
      refusals_[i] = "not named in WEFT_NICS";
    } else if (!nics[i].up) {
      refusals_[i] = "down";
    } else if (limits.include.empty() && reach != best) {
      refusals_[i] = fmt::format(
          "{}; used only when WEFT_NICS names it, or when nothing better is up", words(reach));
    } else {
      usable_.push_back(i);
    }
  }
}

void Node::give_all() {
  PeList everybody(question_.places.size());
  for (std::size_t pe = 0; pe < everybody.size(); ++pe) {
    everybody[pe] = pe;
  }
  for (const std::size_t nic : usable_) {
    users_[nic] = everybody;
  }
}

Distance Node::distance_of(std::size_t pe, std::size_t nic) const {
  const NicCandidate& candidate = question_.candidates[nic];
  std::optional<PciAddress> pci = candidate.pci;
  if (!pci) {
    const Nic* known = find_nic(machine_, candidate.name);
    pci = known == nullptr ? std::nullopt : known->pci;
  }
  return distance(machine_, question_.places[pe], pci);
}

Distance Node::nearest_of(std::size_t pe) const {
  Distance nearest = Distance::Unknown;
  for (const std::size_t nic : usable_) {
    nearest = std::min(nearest, distance_of(pe, nic));
  }
  return nearest;
}

void Node::share_claimed() {
  std::map<std::size_t, PeList> claims;
  for (std::size_t pe = 0; pe < question_.places.size(); ++pe) {
    const Distance nearest = nearest_of(pe);
    for (const std::size_t nic : usable_) {
      if (distance_of(pe, nic) == nearest) {
        claims[nic].push_back(pe);
      }
    }
  }
  std::map<PeList, NicList> groups;
  for (const auto& [nic, claimers] : claims) {
    groups[claimers].push_back(nic);
  }
  share_out(groups);
}

void Node::share_unclaimed() {
  PeList takers;
  for (std::size_t pe = 0; pe < question_.places.size(); ++pe) {
    if (nearest_of(pe) != Distance::SameSwitch) {
      takers.push_back(pe);
    }
  }
  if (takers.empty()) {
    return;
  }
  std::map<PeList, NicList> groups;
  for (const std::size_t nic : usable_) {
    if (!users_[nic].empty()) {
      continue;
    }
    const auto order = [this, nic](std::size_t pe) { return distance_of(pe, nic); };
    const Distance nearest = order(*std::ranges::min_element(takers, {}, order));
    PeList nearest_pes;
    std::ranges::copy_if(takers, std::back_inserter(nearest_pes),
                         [&](std::size_t pe) { return order(pe) == nearest; });
    groups[nearest_pes].push_back(nic);
  }
  share_out(groups);
}

void Node::share_out(const std::map<PeList, NicList>& groups) {
  for (const auto& [pes, nics] : groups) {
    for (std::size_t i = 0; i < pes.size(); ++i) {
      const Share share = share_of(nics.size(), {i, pes.size()});
      for (std::size_t k = share.begin; k < share.end; ++k) {
        users_[nics[k]].push_back(pes[i]);
      }
    }
  }
}

std::string Node::why_mine(std::size_t nic, Distance distance) const {
  const PePlace& place = question_.places[question_.local_index];
  std::string where;
  if (distance == Distance::Unknown) {
    where = "as near as any other";
  } else if (place.gpu) {
    where = fmt::format("{} as this PE's GPU {}", to_string(distance), to_string(*place.gpu));
  } else {
    where = fmt::format("{} as this PE's cores", to_string(distance));
  }
  if (distance == Distance::OtherNuma) {
    where =
        place.gpu ? "other NUMA node than this PE's GPU" : "other NUMA node than this PE's cores";
  }
  const std::size_t sharers = users_[nic].size();
  return sharers > 1 ? fmt::format("{}; shared by {} PEs of this node", where, sharers) : where;
}

std::string Node::why_not_mine(std::size_t nic) const {
  if (users_[nic].empty()) {
    return "further away than the NICs behind the GPUs' own PCI switches; WEFT_NICS_SHARED=yes "
           "opens it";
  }
  const PeList& users = users_[nic];
  constexpr std::size_t kListedMax = 4;
  return users.size() > kListedMax
             ? fmt::format("goes to {} other PEs of this node, PE {} to PE {}", users.size(),
                           users.front(), users.back())
             : fmt::format("goes to PE {} of this node", fmt::join(users, ", "));
}

NicChoice Node::choice() const {
  const std::size_t me = question_.local_index;
  NicChoice choice;
  NicList mine;
  for (std::size_t nic = 0; nic < question_.candidates.size(); ++nic) {
    NicVerdict verdict{false, distance_of(me, nic), ""};
    if (const auto refusal = refusals_.find(nic); refusal != refusals_.end()) {
      verdict.reason = refusal->second;
    } else if (std::ranges::find(users_[nic], me) == users_[nic].end()) {
      verdict.reason = why_not_mine(nic);
    } else {
      mine.push_back(nic);
    }
    choice.verdicts.push_back(std::move(verdict));
  }
  // The limit keeps the nearest NICs, in the order of the candidates.
  std::ranges::stable_sort(mine, {},
                           [&](std::size_t nic) { return choice.verdicts[nic].distance; });
  for (std::size_t i = 0; i < mine.size(); ++i) {
    NicVerdict& verdict = choice.verdicts[mine[i]];
    verdict.chosen = i < question_.limits.rail_count_max;
    verdict.reason = verdict.chosen ? why_mine(mine[i], verdict.distance)
                                    : fmt::format("beyond WEFT_RAIL_COUNT_MAX={}",
                                                  question_.limits.rail_count_max);
    if (verdict.chosen) {
      choice.chosen.push_back(mine[i]);
    }
  }
  std::ranges::sort(choice.chosen);
  return choice;
}

}  // namespace

bool is_named(const NicCandidate& nic, const NicLimits& limits) {
  return std::ranges::any_of(limits.include,
                             [&nic](const std::string& wanted) { return matches(nic, wanted); });
}

NicChoice choose_nics(const Machine& machine, const NicQuestion& question) {
  check(question);
  return Node(machine, question).choice();
}

NicLimits nic_limits(const Config& config) {
  NicLimits limits;
  limits.nics_shared = config.nics_shared;
  if (config.rail_count_max < 1 ||
      config.rail_count_max > static_cast<std::int64_t>(kRailCountMax)) {
    fail(Status::InvalidArgument, "WEFT_RAIL_COUNT_MAX={}: use 1 to {}", config.rail_count_max,
         kRailCountMax);
  }
  limits.rail_count_max = static_cast<std::uint32_t>(config.rail_count_max);
  std::string_view rest = config.nics;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view name = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    if (!name.empty()) {
      limits.include.emplace_back(name);
    }
  }
  return limits;
}

std::string explain(std::span<const NicCandidate> candidates, const NicChoice& choice) {
  std::string text;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : "\n", label(candidates[i]),
                        choice.verdicts[i].reason);
  }
  return text;
}

Share share_of(std::size_t item_count, Sharers sharers) {
  const auto [index, count] = sharers;
  const std::size_t begin = index * item_count / count;
  if (item_count == 0) {
    return {};
  }
  return item_count < count ? Share{begin, begin + 1}
                            : Share{begin, (index + 1) * item_count / count};
}

}  // namespace weft::topology
