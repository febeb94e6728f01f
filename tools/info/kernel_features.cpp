#include "tools/info/kernel_features.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <sys/utsname.h>

namespace weft::info {
namespace {

// pidfd_getfd(2)
constexpr KernelVersion kDescriptorsSince{5, 6};
// ib_umem_dmabuf_get, by which a NIC's driver takes a dma-buf.
constexpr KernelVersion kDmaBufSince{5, 12};

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Permission network_namespaces(const std::string& root) {
  const std::string most = first_line(root + "/proc/sys/user/max_net_namespaces");
  const bool allowed = !most.empty() && most != "0";
  return {"network namespaces", allowed,
          allowed
              ? "weft-lab can give each host NICs of its own"
              : "user.max_net_namespaces is 0 or missing; sysctl -w user.max_net_namespaces=1000"};
}

Permission descriptors(KernelVersion version) {
  const bool allowed = version >= kDescriptorsSince;
  return {"pidfd_getfd", allowed,
          allowed ? "PEs of a node can map each other's device heaps"
                  : "needs Linux 5.6; WEFT_DEVICE_MEMORY=ipc does without"};
}

Permission dma_buf(const std::string& root, KernelVersion version) {
  Permission permission{"dma-buf of GPUs", false, ""};
  const std::string driver = first_line(root + "/proc/driver/nvidia/version");
  if (driver.empty()) {
    permission.detail = "no NVIDIA driver is loaded";
  } else if (version < kDmaBufSince) {
    permission.detail = "NICs take dma-bufs from Linux 5.12 on; nvidia-peermem is the other way";
  } else if (driver.find("Open Kernel Module") == std::string::npos) {
    permission.detail = "the NVIDIA driver is not its open kernel modules, which export dma-bufs";
  } else {
    permission.allowed = true;
    permission.detail = "Linux 5.12 or later, and NVIDIA's open kernel modules";
  }
  return permission;
}

Permission peermem(const std::string& root) {
  for (const char* module : {"nvidia_peermem", "nv_peer_mem"}) {
    if (exists(root + "/sys/module/" + module)) {
      return {"GPUDirect peermem", true, fmt::format("module {}", module)};
    }
  }
  return {"GPUDirect peermem", false, "not loaded (modprobe nvidia-peermem); dma-buf replaces it"};
}

Permission gdrcopy(const std::string& root) {
  const bool allowed = exists(root + "/dev/gdrdrv");
  return {"gdrcopy", allowed, allowed ? "/dev/gdrdrv" : "no /dev/gdrdrv"};
}

// The first group stands for all: the kernel's default for devices.
Permission iommu(const std::string& root) {
  const std::string type = first_line(root + "/sys/kernel/iommu_groups/0/type");
  if (type.empty()) {
    return {"direct PCIe traffic", true, "no IOMMU is on"};
  }
  const bool passes = type == "identity";
  return {"direct PCIe traffic", passes,
          passes
              ? "the IOMMU passes addresses through"
              : fmt::format("the IOMMU translates ({}): traffic between GPU and NIC may go by the "
                            "root port; boot with iommu=pt",
                            type)};
}

}  // namespace

KernelVersion parse_kernel_version(const std::string& release) {
  KernelVersion version;
  // NOLINTNEXTLINE(cert-err34-c): what does not match leaves zeros
  static_cast<void>(std::sscanf(release.c_str(), "%d.%d", &version.major, &version.minor));
  return version;
}

std::vector<Permission> kernel_features(const std::string& root, const std::string& release) {
  const KernelVersion version = parse_kernel_version(release);
  return {network_namespaces(root),
          descriptors(version),
          dma_buf(root, version),
          peermem(root),
          gdrcopy(root),
          iommu(root)};
}

std::string kernel_release() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

}  // namespace weft::info
