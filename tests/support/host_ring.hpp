// A ring in host memory, for tests whose "GPU" is a thread.
//
// Owns what RingView points to; zeroed.
#pragma once

#include <weft/device/ring.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace weft::test {

class HostRing {
 public:
  explicit HostRing(std::uint64_t capacity)
      : far_(device::RingView::far_bytes(capacity) / sizeof(Line)),
        view_{.far = reinterpret_cast<std::byte*>(far_.data()),
              .near = reinterpret_cast<std::byte*>(near_.data()),
              .capacity = capacity} {}

  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  [[nodiscard]] const device::RingView& view() const { return view_; }

 private:
  struct alignas(device::RingView::kLineBytes) Line {
    std::array<std::byte, device::RingView::kLineBytes> bytes{};
  };

  std::vector<Line> far_;
  std::array<Line, device::RingView::kNearBytes / sizeof(Line)> near_;
  device::RingView view_;
};

}  // namespace weft::test
