#include "src/gpu/inventory.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/service_thread.hpp"
#include "src/gpu/cuda/driver.hpp"
#include "src/gpu/cuda/nvlink.hpp"
#include "src/gpu/nic_access.hpp"

namespace weft::gpu {
namespace {

// 0 if this driver does not know the attribute.
std::int32_t attribute(cudaDeviceAttr which, std::int32_t device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

bool peer_attribute(cudaDeviceP2PAttr which, std::int32_t from, std::int32_t to) {
  int value = 0;
  return cudaDeviceGetP2PAttribute(&value, which, from, to) == cudaSuccess && value != 0;
}

InventoryGpu describe(std::int32_t index, std::int32_t count) {
  InventoryGpu gpu;
  gpu.device = describe_device(index);
  gpu.compute_major = attribute(cudaDevAttrComputeCapabilityMajor, index);
  gpu.compute_minor = attribute(cudaDevAttrComputeCapabilityMinor, index);
  gpu.multiprocessor_count = attribute(cudaDevAttrMultiProcessorCount, index);
  gpu.links.resize(static_cast<std::size_t>(count));
  for (std::int32_t other = 0; other < count; ++other) {
    if (other != index) {
      PeerLink& link = gpu.links[static_cast<std::size_t>(other)];
      link.has_access = peer_attribute(cudaDevP2PAttrAccessSupported, index, other);
      link.has_atomics = peer_attribute(cudaDevP2PAttrNativeAtomicSupported, index, other);
    }
  }
  return gpu;
}

}  // namespace

Inventory take_inventory() {
  Inventory inventory;
  inventory.runtime_version = CUDART_VERSION;
  cudaDriverGetVersion(&inventory.driver_version);
  try {
    const std::int32_t count = device_count();
    for (std::int32_t index = 0; index < count; ++index) {
      inventory.gpus.push_back(describe(index, count));
    }
  } catch (const Error& error) {
    inventory.gpus.clear();
    inventory.absence = error.what();
  }
  Nvml().complete(inventory);
  return inventory;
}

namespace {

bool has_context() {
  try {
    CUcontext context = nullptr;
    return driver().ctx_get_current(&context) == CUDA_SUCCESS && context != nullptr;
  } catch (const Error&) {  // a driver that is also too old for everything else
    return false;
  }
}

}  // namespace

VisibleGpus find_visible_gpus() {
  const ServiceSignals signals;  // the driver starts threads when it is initialized
  VisibleGpus visible;
  int count = 0;
  if (!has_driver() || cudaGetDeviceCount(&count) != cudaSuccess) {
    return visible;
  }
  for (int index = 0; index < count; ++index) {
    std::array<char, 32> pci{};
    if (cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), index) != cudaSuccess) {
      return {};
    }
    visible.pci.emplace_back(pci.data());
  }
  int current = 0;
  if (has_context() && cudaGetDevice(&current) == cudaSuccess) {
    visible.current = static_cast<std::size_t>(current);
  }
  return visible;
}

std::vector<bool> have_atomics(const Device& device, std::span<const std::string> peers) {
  const VisibleGpus visible = find_visible_gpus();
  std::optional<Nvml> nvml;  // takes time to start
  std::vector<bool> found;
  for (const std::string& pci : peers) {
    const auto peer = std::ranges::find(visible.pci, pci);
    if (peer != visible.pci.end()) {
      found.push_back(peer_attribute(cudaDevP2PAttrNativeAtomicSupported, device.index,
                                     static_cast<std::int32_t>(peer - visible.pci.begin())));
      continue;
    }
    if (!nvml) {
      nvml.emplace();
    }
    found.push_back(nvml->has_atomics(device.pci, pci));
  }
  return found;
}

}  // namespace weft::gpu
