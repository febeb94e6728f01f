// The chooser of the policies that count operations: each policy names a link for the n-th
// operation.
#include "src/transport/rails/allowed_rails.hpp"
#include "src/transport/rails/choosers.hpp"

namespace weft::transport::rails {

RailPair rail_zero(const PlanInput& /*input*/) {
  return {RailIndex(0), RailIndex(0)};
}

RailPair same_index(const PlanInput& input) {
  const std::uint64_t local = input.counter % input.local.size();
  return {RailIndex(static_cast<std::uint32_t>(local)),
          RailIndex(static_cast<std::uint32_t>(local % input.remote.size()))};
}

RailPair by_sum(const PlanInput& input) {
  const std::uint64_t remote =
      (input.me.value + input.peer.value + input.counter) % input.remote.size();
  return {RailIndex(static_cast<std::uint32_t>(input.counter % input.local.size())),
          RailIndex(static_cast<std::uint32_t>(remote))};
}

// The whole operation on the named link or, if that is down, on the next link that is up.
std::optional<Piece> whole_on(const PlanInput& input, RailPair named, Rest rest) {
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    for (std::uint32_t remote = 0; remote < count_of(input.remote); ++remote) {
      const std::uint32_t l = (named.local.value + local) % count_of(input.local);
      const std::uint32_t r = (named.remote.value + remote) % count_of(input.remote);
      if (!is_linked(input, l, r)) {
        continue;
      }
      const std::uint64_t bytes = rest.total - rest.offset;
      const RailState& rail = input.local[l];
      const bool has_room =
          rail.outstanding_bytes == 0 || rail.outstanding_bytes + bytes <= rail.window_bytes;
      if (bytes >= input.stripe_bytes_min && !has_room) {
        return std::nullopt;
      }
      return Piece{RailIndex(l), RailIndex(r), rest.offset, bytes, {}};
    }
  }
  return std::nullopt;
}

}  // namespace weft::transport::rails
