#include "src/transport/rails/planner.hpp"

#include <algorithm>
#include <limits>

#include "src/transport/rails/allowed_rails.hpp"

namespace weft::transport::rails {
namespace {

std::uint32_t sender_count(const FirstRemote& of) {
  return std::max(of.pe_count - std::min(of.near_count, of.pe_count), 1U);
}

}  // namespace

bool covers(const FirstRemote& of, std::uint32_t remote_count) {
  return sender_count(of) % remote_count == 0 || remote_count % sender_count(of) == 0;
}

std::uint32_t first_remote(const FirstRemote& of, std::uint32_t remote_count) {
  const std::uint32_t senders = sender_count(of);
  const std::uint32_t apart = std::max(remote_count / senders, 1U);
  const std::uint32_t distance = (of.me.value + of.pe_count - of.peer.value - 1) % of.pe_count;
  return distance * apart % remote_count;
}

std::optional<Piece> next_piece(const PlanInput& input, Rest rest) {
  return input.local.empty() || input.remote.empty() ? std::nullopt
                                                     : input.policy->next(input, rest);
}

std::optional<Piece> next_message(const PlanInput& input, std::uint64_t bytes) {
  return input.local.empty() || input.remote.empty() ? std::nullopt
                                                     : input.policy->message(input, bytes);
}

std::optional<RailIndex> awaited_rail(const PlanInput& input, Rest rest) {
  return input.policy->awaited(input, rest);
}

bool is_reachable(const PlanInput& input) {
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    if (allowed_remotes(input, local) != 0) {
      return true;
    }
  }
  return false;
}

std::vector<Piece> plan(const PlanInput& input, std::uint64_t total) {
  std::vector<RailState> local(input.local.begin(), input.local.end());
  std::vector<RailState> remote(input.remote.begin(), input.remote.end());
  for (RailState& rail : local) {
    rail.window_bytes = std::numeric_limits<std::uint64_t>::max() / 2;
  }
  for (RailState& rail : remote) {
    rail.window_bytes = std::numeric_limits<std::uint64_t>::max() / 2;
  }
  PlanInput simulated = input;
  simulated.local = local;
  simulated.remote = remote;
  std::vector<Piece> pieces;
  Rest rest{.total = total};
  do {
    const auto piece = next_piece(simulated, rest);
    if (!piece) {
      break;
    }
    pieces.push_back(*piece);
    for (RailState* rail : {&local[piece->local.value], &remote[piece->remote.value]}) {
      rail->sent_bytes += piece->bytes;
      rail->outstanding_bytes += piece->bytes;
    }
    rest.offset += piece->bytes;
    rest.span = piece->span;
  } while (rest.offset < total);
  return pieces;
}

}  // namespace weft::transport::rails
