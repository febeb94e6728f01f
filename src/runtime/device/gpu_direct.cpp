#include "src/runtime/device/gpu_direct.hpp"

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::runtime {
namespace {

using fabric::DeviceWay;
using transport::rails::DeviceRail;
using transport::rails::RailsTransport;

// The information that a PE sends about itself.
struct HeapRegistration {
  bool must = false;    // its mode is "on"
  std::string refusal;  // empty: all its rails have registered its heap
  bootstrap::Blob keys;
};

bootstrap::Blob encode(const HeapRegistration& registration) {
  bootstrap::FieldWriter writer;
  writer.u32(registration.must ? 1 : 0).text(registration.refusal).blob(registration.keys);
  return writer.bytes();
}

HeapRegistration decode(const bootstrap::Blob& blob) {
  bootstrap::FieldReader reader(blob);
  HeapRegistration registration{.must = reader.u32() != 0, .refusal = reader.text(), .keys = {}};
  const auto keys = reader.blob();
  registration.keys.assign(keys.begin(), keys.end());
  return registration;
}

// The reason of the first rail that has not registered the heap.
std::string refusal_of(const std::vector<DeviceRail>& rails) {
  const auto refused = std::ranges::find(rails, DeviceWay::None, &DeviceRail::way);
  return refused == rails.end() ? "" : fmt::format("rail {}: {}", refused->nic, refused->why);
}

// All PEs' registrations, and the keys alone.
struct Gathered {
  std::vector<HeapRegistration> registrations;
  std::vector<bootstrap::Blob> keys;
};

Gathered gather(bootstrap::Bootstrap& bootstrap, const HeapRegistration& mine) {
  Gathered all;
  for (const bootstrap::Blob& blob : bootstrap.allgather(encode(mine))) {
    all.registrations.push_back(decode(blob));
    all.keys.push_back(all.registrations.back().keys);
  }
  return all;
}

// Empty unless a PE requires direct access and another PE lacks it.
std::string unmet_requirement(const std::vector<HeapRegistration>& registrations) {
  const auto asks = std::ranges::find(registrations, true, &HeapRegistration::must);
  const auto cannot = std::ranges::find_if(registrations, [](const HeapRegistration& registration) {
    return !registration.refusal.empty();
  });
  if (asks == registrations.end() || cannot == registrations.end()) {
    return "";
  }
  return fmt::format(
      "WEFT_DEVICE_DIRECT=on (PE {}), but the NICs of PE {} do not reach its GPU: {}; set auto, "
      "and "
      "such PEs are staged",
      asks - registrations.begin(), cannot - registrations.begin(), cannot->refusal);
}

}  // namespace

GpuDirectOffer make_gpu_direct_offer(std::string_view mode,
                                     const gpu::Device& device,
                                     gpu::MemoryKind kind,
                                     std::span<std::byte> heap) {
  GpuDirectOffer offer{.memory = {.memory = heap, .gpu = device.index}, .pages = {}, .refusal = ""};
  offer.refusal = mode == "off" ? "WEFT_DEVICE_DIRECT=off" : gpu::nic_refusal(device, kind);
  if (offer.refusal.empty()) {
    offer.pages = gpu::dma_buf_of(device, heap);
    offer.memory.dma_buf = offer.pages.descriptor.get();
    offer.memory.no_dma_buf = offer.pages.why_not;
  }
  return offer;
}

GpuDirectHeap connect_device_heap(RailsTransport& rails,
                                  bootstrap::Bootstrap& bootstrap,
                                  RegionIndex region,
                                  std::string_view mode,
                                  const GpuDirectOffer& offer) {
  GpuDirectHeap result;
  result.region = region;
  result.refusal = offer.refusal;
  const bool is_offered = offer.refusal.empty();
  HeapRegistration mine{.must = mode == "on", .refusal = offer.refusal, .keys = {}};
  mine.keys = rails.add_device_region(region, is_offered ? &offer.memory : nullptr);
  result.rails = rails.device_rails();
  if (is_offered) {
    mine.refusal = refusal_of(result.rails);
  }
  const auto [registrations, keys] = gather(bootstrap, mine);
  if (const std::string text = unmet_requirement(registrations); !text.empty()) {
    rails.drop_device_region(offer.memory.memory);
    fail(Status::InvalidArgument, "{}", text);
  }
  result.peers = rails.connect_device_region(region, keys);
  result.is_used = std::ranges::any_of(registrations, [](const HeapRegistration& registration) {
    return registration.refusal.empty();
  });
  for (const DeviceRail& rail : result.rails) {
    log::info("device: rail {}", describe(rail));
  }
  log::info("device: data goes directly to and from {} of {} PEs",
            std::ranges::count(result.peers, true), result.peers.size());
  return result;
}

std::string GpuDirectHeap::why_not() const {
  return refusal.empty() ? refusal_of(rails) : refusal;
}

bool GpuDirectHeap::is_registered() const {
  return why_not().empty();
}

void connect_device_chunk(RailsTransport& rails,
                          bootstrap::Bootstrap& bootstrap,
                          const GpuDirectChunk& chunk) {
  HeapRegistration mine;
  mine.keys = rails.add_device_region(chunk.region, chunk.is_offered ? &chunk.memory : nullptr);
  if (chunk.is_offered) {
    mine.refusal = refusal_of(rails.device_rails());
  }
  Gathered all;
  try {
    all = gather(bootstrap, mine);
  } catch (...) {
    rails.drop_device_region(chunk.memory.memory);
    throw;
  }
  const auto& [registrations, keys] = all;
  const auto cannot = std::ranges::find_if(registrations, [](const HeapRegistration& registration) {
    return !registration.refusal.empty();
  });
  if (cannot == registrations.end()) {
    static_cast<void>(rails.connect_device_region(chunk.region, keys));
    return;
  }
  rails.drop_device_region(chunk.memory.memory);
  fail(Status::OutOfMemory, "the NICs of PE {} do not register {} more of its device heap: {}",
       cannot - registrations.begin(), format_bytes(chunk.memory.memory.size()), cannot->refusal);
}

void disconnect_device_chunk(RailsTransport& rails,
                             RegionIndex region,
                             std::span<std::byte> memory) noexcept {
  rails.drop_device_region(memory);
  rails.remove_region(region);
}

std::string connect_device_window(RailsTransport& rails, const fabric::DeviceMemory& memory) {
  const std::vector<DeviceRail> results = rails.register_device_memory(memory);
  for (const DeviceRail& rail : results) {
    log::info("device: a window of {}: rail {}", format_bytes(memory.memory.size()),
              describe(rail));
  }
  return refusal_of(results);
}

std::string describe(const DeviceRail& rail) {
  return fmt::format("{}: {} ({})", rail.nic, fabric::to_string(rail.way), rail.why);
}

}  // namespace weft::runtime
