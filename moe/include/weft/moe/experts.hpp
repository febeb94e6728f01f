// Which rank owns which expert. E experts on R ranks need not divide: each rank owns a run of
// consecutive experts, and the first E mod R ranks own one more.
//
// Pure functions, for host and device. A rank is a PE's number in the team of the exchange.
#ifndef WEFT_MOE_EXPERTS_HPP
#define WEFT_MOE_EXPERTS_HPP

#include <weft/device/host_device.hpp>

#include <cstdint>

namespace weft {
namespace moe {

// The largest exchanges; kRanksMax is of those in GPU memory, whose kernels keep ranks as bits of a
// word.
constexpr std::uint32_t kRanksMax = 64;
constexpr std::uint32_t kExpertsMax = 4096;
constexpr std::uint32_t kTopkMax = 32;
// Tokens of one PE in one dispatch.
constexpr std::uint32_t kTokensMax = 1U << 20U;

// Division by a number that is known before, for dividends and divisors below 2^16.
class Divisor {
 public:
  WEFT_HOST_DEVICE constexpr explicit Divisor(std::uint32_t divisor = 1)
      : factor_(((std::uint64_t{1} << 32) + divisor - 1) / divisor) {}

  WEFT_HOST_DEVICE std::int32_t quotient(std::int32_t dividend) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(dividend) * factor_ >> 32);
  }

 private:
  std::uint64_t factor_;  // 2^32 / divisor, rounded up
};

struct ExpertMap {
  std::int32_t experts = 1;
  std::int32_t ranks = 1;

  constexpr ExpertMap() = default;

  WEFT_HOST_DEVICE constexpr ExpertMap(std::int32_t all, std::int32_t owners)
      : experts(all),
        ranks(owners),
        least_(all / owners),
        longer_(all % owners),
        by_least_(static_cast<std::uint32_t>(all < owners ? 1 : all / owners)),
        by_most_(static_cast<std::uint32_t>(all / owners + 1)) {}

  WEFT_HOST_DEVICE std::int32_t count_of(std::int32_t rank) const {
    return least_ + (rank < longer_ ? 1 : 0);
  }

  WEFT_HOST_DEVICE std::int32_t first_of(std::int32_t rank) const {
    return rank * least_ + (rank < longer_ ? rank : longer_);
  }

  // Of an expert from 0 to experts - 1.
  WEFT_HOST_DEVICE std::int32_t rank_of(std::int32_t expert) const {
    const std::int32_t in_longer = longer_ * (least_ + 1);
    return expert < in_longer ? by_most_.quotient(expert)
                              : longer_ + by_least_.quotient(expert - in_longer);
  }

  // The expert's number on the rank that owns it.
  WEFT_HOST_DEVICE std::int32_t local_of(std::int32_t expert) const {
    return expert - first_of(rank_of(expert));
  }

  WEFT_HOST_DEVICE bool owns(std::int32_t rank, std::int32_t expert) const {
    const std::int32_t local = expert - first_of(rank);
    return expert >= 0 && local >= 0 && local < count_of(rank);
  }

 private:
  std::int32_t least_ = 1;   // experts of a rank
  std::int32_t longer_ = 0;  // ranks with one more
  Divisor by_least_;
  Divisor by_most_{2};
};

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_EXPERTS_HPP
