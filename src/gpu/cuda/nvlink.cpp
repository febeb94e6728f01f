// The interface is NVML's C API ("NVML API Reference Guide", docs.nvidia.com/deploy/nvml-api). It
// is declared here, because its header is in a different package than CUDA's compiler. Types and
// constants of that API are stable: changed functions get a new name.
#include "src/gpu/cuda/nvlink.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <dlfcn.h>

#include "src/base/pci_address.hpp"

namespace weft::gpu {
namespace {

using DeviceHandle = struct NvmlDevice*;

constexpr int kSuccess = 0;
constexpr unsigned int kLinksMax = 36;            // NVML_NVLINK_MAX_LINKS
constexpr int kP2pNvlink = 2;                     // NVML_P2P_CAPS_INDEX_NVLINK
constexpr int kP2pAtomics = 3;                    // NVML_P2P_CAPS_INDEX_ATOMICS
constexpr int kP2pOk = 0;                         // NVML_P2P_STATUS_OK
constexpr unsigned int kSpeedMegabytesPerS = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON

// nvmlPciInfo_t
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};

// nvmlFieldValue_t
struct FieldValue {
  unsigned int field_id, scope_id;
  std::int64_t timestamp, latency_us;
  int value_type, result;

  union {
    double real;
    unsigned int number;
    std::uint64_t wide_number;
  } value;
};

static_assert(sizeof(PciInfo) == 68 && sizeof(FieldValue) == 40);

template <typename Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvml::Functions {
  void* library = nullptr;
  int (*init)();
  int (*shutdown)();
  int (*driver_version)(char*, unsigned int);
  int (*handle_by_pci)(const char*, DeviceHandle*);
  int (*link_state)(DeviceHandle, unsigned int, int*);
  int (*link_remote)(DeviceHandle, unsigned int, PciInfo*);
  int (*p2p_status)(DeviceHandle, DeviceHandle, int, int*);
  int (*field_values)(DeviceHandle, int, FieldValue*);

  [[nodiscard]] bool load() {
    library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && find(library, init, "nvmlInit_v2") &&
           find(library, shutdown, "nvmlShutdown") &&
           find(library, driver_version, "nvmlSystemGetDriverVersion") &&
           find(library, handle_by_pci, "nvmlDeviceGetHandleByPciBusId_v2") &&
           find(library, link_state, "nvmlDeviceGetNvLinkState") &&
           find(library, link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2") &&
           find(library, p2p_status, "nvmlDeviceGetP2PStatus") &&
           find(library, field_values, "nvmlDeviceGetFieldValues") && init() == kSuccess;
  }

  [[nodiscard]] DeviceHandle handle_at(const std::string& pci) const {
    DeviceHandle handle = nullptr;
    return handle_by_pci(pci.c_str(), &handle) == kSuccess ? handle : nullptr;
  }

  [[nodiscard]] DeviceHandle handle_of(const Device& device) const { return handle_at(device.pci); }

  [[nodiscard]] bool is_nvlink(DeviceHandle from, DeviceHandle to) const {
    int status = -1;
    return p2p_status(from, to, kP2pNvlink, &status) == kSuccess && status == kP2pOk;
  }

  // The devices at the other ends of the links that are up.
  [[nodiscard]] std::vector<std::optional<PciAddress>> link_ends(DeviceHandle device) const {
    std::vector<std::optional<PciAddress>> ends;
    for (unsigned int link = 0; link < kLinksMax; ++link) {
      int is_active = 0;
      if (link_state(device, link, &is_active) != kSuccess || is_active == 0) {
        continue;
      }
      PciInfo remote{};
      ends.push_back(
          link_remote(device, link, &remote) == kSuccess
              ? std::optional(PciAddress{.domain = remote.domain,
                                         .bus = static_cast<std::uint8_t>(remote.bus),
                                         .device = static_cast<std::uint8_t>(remote.device)})
              : std::nullopt);
    }
    return ends;
  }

  [[nodiscard]] std::uint64_t link_bytes_per_s(DeviceHandle device) const {
    FieldValue field{};
    field.field_id = kSpeedMegabytesPerS;
    const bool known = field_values(device, 1, &field) == kSuccess && field.result == kSuccess;
    return known ? field.value.number * std::uint64_t{1'000'000} : 0;
  }
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {
  if (!functions_->load()) {
    functions_.reset();  // the library stays loaded, at no cost
  }
}

Nvml::~Nvml() {
  if (functions_ != nullptr) {
    functions_->shutdown();
  }
}

bool Nvml::has_atomics(const std::string& from, const std::string& to) const {
  if (functions_ == nullptr) {
    return true;
  }
  const DeviceHandle one = functions_->handle_at(from);
  const DeviceHandle other = functions_->handle_at(to);
  int status = kP2pOk;
  return one == nullptr || other == nullptr ||
         functions_->p2p_status(one, other, kP2pAtomics, &status) != kSuccess || status == kP2pOk;
}

void Nvml::complete(Inventory& inventory) const {
  if (functions_ == nullptr) {
    return;
  }
  std::array<char, 96> release{};
  if (functions_->driver_version(release.data(), release.size()) == kSuccess) {
    inventory.driver_release = release.data();
  }
  std::vector<DeviceHandle> handles;
  for (const InventoryGpu& gpu : inventory.gpus) {
    handles.push_back(functions_->handle_of(gpu.device));
  }
  for (std::size_t from = 0; from < handles.size(); ++from) {
    if (handles[from] == nullptr) {
      continue;
    }
    InventoryGpu& gpu = inventory.gpus[from];
    const auto ends = functions_->link_ends(handles[from]);
    gpu.nvlink_count = static_cast<std::uint32_t>(ends.size());
    gpu.nvlink_bytes_per_s = ends.empty() ? 0 : functions_->link_bytes_per_s(handles[from]);
    for (std::size_t to = 0; to < handles.size(); ++to) {
      if (to == from || handles[to] == nullptr) {
        continue;
      }
      gpu.links[to].is_nvlink = functions_->is_nvlink(handles[from], handles[to]);
      gpu.links[to].nvlink_count = static_cast<std::uint32_t>(
          std::ranges::count(ends, parse_pci_address(inventory.gpus[to].device.pci)));
    }
  }
}

}  // namespace weft::gpu
