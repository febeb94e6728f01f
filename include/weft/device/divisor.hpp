// Division by a number that is the same for a whole loop, as one multiplication: a GPU has no
// instruction for the division of integers, and its 20 or so take longer than a load from L1.
//
// Constant; no state.
#ifndef WEFT_DEVICE_DIVISOR_HPP
#define WEFT_DEVICE_DIVISOR_HPP

#include <weft/device/host_device.hpp>
#include <weft/device/standard.hpp>

namespace weft::device {

class Divisor {
 public:
  explicit WEFT_HOST_DEVICE Divisor(std::uint32_t value)
      : inverse_(1.0F / static_cast<float>(value)) {}

  // Exact below kDividendEnd: (n + 1/2) / d is at least 1 / (2 d) from an integer, and the inverse
  // and the product are off by 2^-21 of it at most.
  [[nodiscard]] WEFT_HOST_DEVICE std::uint32_t quotient(std::uint32_t dividend) const {
    return static_cast<std::uint32_t>((static_cast<float>(dividend) + 0.5F) * inverse_);
  }

  static constexpr std::uint32_t kDividendEnd = std::uint32_t{1} << 20U;

 private:
  float inverse_;
};

}  // namespace weft::device

#endif  // WEFT_DEVICE_DIVISOR_HPP
