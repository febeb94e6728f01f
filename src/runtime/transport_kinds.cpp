#include "src/runtime/transport_kinds.hpp"

#include <array>

namespace weft::runtime {

std::vector<std::span<std::byte>> TransportSite::regions() const {
  std::vector<std::span<std::byte>> all{{heap.base(), heap.size()}};
  for (const heap::Region& region : heap.regions().all()) {
    all.emplace_back(region.base, region.bytes);
  }
  return all;
}

std::span<const TransportKind> transport_kinds() {
  static const std::array kKinds{kCmaKind, kRailsKind};
  return kKinds;
}

}  // namespace weft::runtime
