#include "src/runtime/device/gpu_direct.hpp"

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
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
  GpuDirectHeap result{.region = region, .peers = {}, .rails = {}, .refusal = offer.refusal};
  const bool is_offered = offer.refusal.empty();
  HeapRegistration mine{.must = mode == "on", .refusal = offer.refusal, .keys = {}};
  mine.keys = rails.add_device_region(region, is_offered ? &offer.memory : nullptr);
  result.rails = rails.device_rails();
  if (is_offered) {
    mine.refusal = refusal_of(result.rails);
  }
  std::vector<HeapRegistration> registrations;
  std::vector<bootstrap::Blob> keys;
  for (const bootstrap::Blob& blob : bootstrap.allgather(encode(mine))) {
    registrations.push_back(decode(blob));
    keys.push_back(registrations.back().keys);
  }
  if (const std::string text = unmet_requirement(registrations); !text.empty()) {
    rails.drop_device_region(offer.memory.memory);
    fail(Status::InvalidArgument, "{}", text);
  }
  result.peers = rails.connect_device_region(region, keys);
  for (const DeviceRail& rail : result.rails) {
    log::info("device: rail {}", describe(rail));
  }
  log::info("device: data goes directly to and from {} of {} PEs",
            std::ranges::count(result.peers, true), result.peers.size());
  return result;
}

std::string describe(const DeviceRail& rail) {
  return fmt::format("{}: {} ({})", rail.nic, fabric::to_string(rail.way), rail.why);
}

}  // namespace weft::runtime
