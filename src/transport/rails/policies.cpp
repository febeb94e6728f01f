#include "src/transport/rails/policies.hpp"

#include <algorithm>
#include <array>

#include "src/base/error.hpp"
#include "src/base/rail_policies.hpp"
#include "src/transport/rails/choosers.hpp"

namespace weft::transport::rails {
namespace {

bool is_rail_zero(RailPair pair, std::size_t /*remote_count*/) {
  return pair.local.value == 0 && pair.remote.value == 0;
}

bool is_same_index(RailPair pair, std::size_t remote_count) {
  return pair.local.value % remote_count == pair.remote.value;
}

bool any_pair(RailPair /*pair*/, std::size_t /*remote_count*/) {
  return true;
}

constexpr Policy by_bytes(std::string_view name, bool (*may_use)(RailPair, std::size_t)) {
  return {.name = name,
          .may_use = may_use,
          .is_first_choice = may_use,
          .next = next_by_bytes,
          .message = message_by_bytes,
          .awaited = awaited_by_bytes};
}

// If the link for an operation is down, the next one that is up is used. So every link may be used.
template <RailPair (*kLink)(const PlanInput&)>
constexpr Policy by_count(std::string_view name, bool (*is_first_choice)(RailPair, std::size_t)) {
  return {.name = name,
          .may_use = any_pair,
          .is_first_choice = is_first_choice,
          .next = next_by_count<kLink>,
          .message = message_by_count<kLink>,
          .awaited = awaits_none};
}

constexpr Policy paired(Policy policy) {
  policy.names_remote = true;
  return policy;
}

constexpr std::array kPolicies{
    by_count<rail_zero>("single", is_rail_zero), by_count<same_index>("coupled", is_same_index),
    by_count<by_sum>("offset", any_pair),        by_bytes("balanced", any_pair),
    paired(by_bytes("aligned", is_same_index)),
};

static_assert(std::ranges::equal(kPolicies, kRailPolicies, {}, &Policy::name, &Choice::name),
              "base/rail_policies.hpp lists the policies that exist, in the same order");

}  // namespace

std::span<const Policy> policies() {
  return kPolicies;
}

const Policy* find_policy(std::string_view name) {
  const auto* const found = std::ranges::find(kPolicies, name, &Policy::name);
  if (found == kPolicies.end()) {
    fail(Status::InvalidArgument, "there is no rail policy '{}'; use {}", name,
         fmt::join(choice_names(kRailPolicies), ", "));
  }
  return found;
}

}  // namespace weft::transport::rails
