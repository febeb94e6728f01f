// Whether all PEs made the same request in a collective allocation, and the error message if not.
// Every PE evaluates the same requests and so reaches the same result.
//
// Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/collectives/control.hpp"

namespace weft::runtime {

enum class RequestKind : std::uint64_t {
  Allocate = 1,
  Release = 2,
  Window = 3,
  DeviceAllocate = 4,
  DeviceRelease = 5,
  DeviceWindow = 6,  // of GPU memory
  WindowEnd = 7,
  DeviceWindowEnd = 8,
  NoWindow = 9,  // memory that cannot be one
  Adopt = 10,    // GPU memory of the program becomes symmetric
  AdoptEnd = 11,
};

// "weft_malloc: PE 2 asked for 64 bytes, PE 0 for 32; the arguments must be the same on all PEs",
// for the first PE that differs from PE 0; empty if all agree.
[[nodiscard]] std::optional<std::string> disagreement(
    std::string_view name, std::span<const collectives::CollectiveRequest> requests);

}  // namespace weft::runtime
