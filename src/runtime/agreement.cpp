#include "src/runtime/agreement.hpp"

#include <fmt/format.h>

namespace weft::runtime {
namespace {

bool is(const collectives::CollectiveRequest& request, RequestKind kind) {
  return request.kind == static_cast<std::uint64_t>(kind);
}

std::string describe(const collectives::CollectiveRequest& request) {
  if (is(request, RequestKind::Release) || is(request, RequestKind::DeviceRelease)) {
    return request.offset == 0 ? "to free NULL"
                               : fmt::format("to free the block at heap offset {}", request.offset);
  }
  if (is(request, RequestKind::Window)) {
    return fmt::format("for a window of {} bytes", request.bytes);
  }
  if (is(request, RequestKind::DeviceWindow)) {
    return fmt::format("for a window of {} bytes of GPU memory", request.bytes);
  }
  if (is(request, RequestKind::NoWindow)) {
    return fmt::format("for a window of {} bytes that cannot be one (see its own message)",
                       request.bytes);
  }
  if (is(request, RequestKind::Adopt)) {
    return fmt::format("to make {} bytes symmetric", request.bytes);
  }
  if (is(request, RequestKind::AdoptEnd)) {
    return request.offset == 0
               ? "to unregister what was not made symmetric"
               : fmt::format("to unregister what is symmetric at heap offset {}", request.offset);
  }
  if (is(request, RequestKind::WindowEnd)) {
    return request.offset == 0 ? "to unregister what is no window"
                               : fmt::format("to unregister window {}", request.offset);
  }
  if (is(request, RequestKind::DeviceWindowEnd)) {
    return "to unregister a window of GPU memory";
  }
  return fmt::format("for {} bytes {}aligned to {}", request.bytes,
                     is(request, RequestKind::DeviceAllocate) ? "on the GPU " : "",
                     request.alignment);
}

}  // namespace

std::optional<std::string> disagreement(std::string_view name,
                                        std::span<const collectives::CollectiveRequest> requests) {
  const collectives::CollectiveRequest& first = requests.front();
  for (std::size_t pe = 1; pe < requests.size(); ++pe) {
    const collectives::CollectiveRequest& other = requests[pe];
    if (other == first) {
      continue;
    }
    const bool only_size =
        other.kind == first.kind && other.alignment == first.alignment &&
        (is(first, RequestKind::Allocate) || is(first, RequestKind::DeviceAllocate));
    const std::string asked =
        only_size
            ? fmt::format("PE {} asked for {} bytes, PE 0 for {}", pe, other.bytes, first.bytes)
            : fmt::format("PE {} asked {}, PE 0 {}", pe, describe(other), describe(first));
    return fmt::format("{}: {}; the arguments must be the same on all PEs", name, asked);
  }
  return std::nullopt;
}

}  // namespace weft::runtime
