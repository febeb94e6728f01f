// Which rank owns which expert. E experts on R ranks need not divide: each rank owns a run of consecutive experts, and
// the first E mod R ranks own one more.
//
// Pure functions, for host and device. A rank is a PE's number in the team of the exchange.
#ifndef WEFT_MOE_EXPERTS_HPP
#define WEFT_MOE_EXPERTS_HPP

#include <weft/device/host_device.hpp>

#include <cstdint>

namespace weft {
namespace moe {

struct ExpertMap {
  std::int32_t experts;
  std::int32_t ranks;

  WEFT_HOST_DEVICE std::int32_t count_of(std::int32_t rank) const {
    return experts / ranks + (rank < experts % ranks ? 1 : 0);
  }

  WEFT_HOST_DEVICE std::int32_t first_of(std::int32_t rank) const {
    const std::int32_t longer = experts % ranks;
    return rank * (experts / ranks) + (rank < longer ? rank : longer);
  }

  // Of an expert from 0 to experts - 1.
  WEFT_HOST_DEVICE std::int32_t rank_of(std::int32_t expert) const {
    const std::int32_t shorter = experts / ranks;
    const std::int32_t in_longer = (experts % ranks) * (shorter + 1);
    return expert < in_longer ? expert / (shorter + 1)
                              : experts % ranks + (expert - in_longer) / shorter;
  }

  // The expert's number on the rank that owns it.
  WEFT_HOST_DEVICE std::int32_t local_of(std::int32_t expert) const {
    return expert - first_of(rank_of(expert));
  }

  WEFT_HOST_DEVICE bool owns(std::int32_t rank, std::int32_t expert) const {
    const std::int32_t local = expert - first_of(rank);
    return expert >= 0 && local >= 0 && local < count_of(rank);
  }
};

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_EXPERTS_HPP
