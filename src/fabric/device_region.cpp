// How a rail registers GPU memory: by dma-buf, by libfabric's interface to the GPU's driver, or not at all.
//
// Control path, under the owner's lock. A rail registers it only if the NIC itself can access it. A provider that
// copies with CUDA from the progress thread may wait for a kernel that waits for that thread: a deadlock.
#include <cerrno>

#include "src/fabric/libfabric_rail.hpp"
#include "src/fabric/quirks.hpp"

// Sizes and memory fields are those of the headers; the options came with 1.18 (fi_endpoint(3)).
#define WEFT_FABRIC_HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

namespace weft::fabric {
namespace {

constexpr std::uint64_t kAccess =
    FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

bool can_take_dma_buf() {
#ifdef FI_MR_DMABUF
  return FI_VERSION_GE(libfabric().version(), FI_VERSION(1, 20));
#else
  return false;
#endif
}

constexpr const char* kOldDmaBuf = "dma-buf needs libfabric 1.20 or later, also when Weft is built";

}  // namespace

std::string_view to_string(DeviceWay way) {
  switch (way) {
    case DeviceWay::None:
      return "staged";
    case DeviceWay::DmaBuf:
      return "dma-buf";
    case DeviceWay::Interface:
      return "interface";
  }
  return "";
}

// Must be called before the endpoint is enabled (fi_endpoint(3)).
void LibfabricRail::require_nic_access() {
  int required = FI_HMEM_P2P_REQUIRED;
  nic_access_error_ =
      -fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &required, sizeof(required));
#if WEFT_FABRIC_HEADERS >= FI_VERSION(1, 18)
  bool permitted = false;
  // If it is rejected, the provider needs CUDA for messages; those are in host memory here.
  static_cast<void>(fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED,
                              &permitted, sizeof(permitted)));
#endif
}

std::string LibfabricRail::device_refusal() const {
  const DeviceCopies copies = quirk_of(provider_).device;
  if (copies == DeviceCopies::Host) {
    return "provider " + provider_ + " has no NIC that reaches GPU memory: it copies";
  }
  if (!has_hmem_) {
    return "provider " + provider_ + " offers no FI_HMEM here";
  }
  // Providers that always let the NIC access the memory need not know the option.
  const bool is_unknown_option = nic_access_error_ == FI_ENOPROTOOPT;
  if (nic_access_error_ != 0 && !(is_unknown_option && copies == DeviceCopies::Nic)) {
    return "provider " + provider_ + " cannot leave GPU memory to the NIC (FI_OPT_FI_HMEM_P2P: " +
           error_words(nic_access_error_) + ")";
  }
  return "";
}

DeviceRegion LibfabricRail::add_device_region(const DeviceMemory& memory) {
  if (const std::string refusal = memory.gpu < 0 ? "" : device_refusal(); !refusal.empty()) {
    return {.way = DeviceWay::None, .key = {}, .why = refusal};
  }
  Region region{.bytes = memory.memory.size(), .registration = {}};
  DeviceRegion result;
  std::string no_dma_buf = memory.no_dma_buf;
  if (memory.dma_buf >= 0) {
    const int error = enter_dma_buf(memory, region.registration);
    no_dma_buf = !can_take_dma_buf() ? kOldDmaBuf : error_words(error);
    result = {
        .way = DeviceWay::DmaBuf, .key = {}, .why = "the kernel has given the NIC the GPU's pages"};
  }
  if (region.registration == nullptr) {
    const int error = enter_interface(memory, region.registration);
    if (error != 0) {
      return {.way = DeviceWay::None,
              .key = {},
              .why = "fi_mr_regattr failed: " + error_words(error) + "; no dma-buf: " + no_dma_buf};
    }
    result = {.way = DeviceWay::Interface, .key = {}, .why = "no dma-buf: " + no_dma_buf};
  }
  result.key = key_of(memory.memory.data(), region.registration.get());
  regions_.insert_or_assign(memory.memory.data(), std::move(region));
  return result;
}

int LibfabricRail::enter_dma_buf(const DeviceMemory& memory, Handle<fid_mr>& result) noexcept {
#ifdef FI_MR_DMABUF
  if (!can_take_dma_buf()) {
    return FI_ENOSYS;
  }
  const fi_mr_dmabuf pages{.fd = memory.dma_buf,
                           .offset = memory.dma_buf_offset,
                           .len = memory.memory.size(),
                           .base_addr = memory.memory.data()};
  fi_mr_attr attributes{};
  attributes.dmabuf = &pages;
  attributes.iov_count = 1;
  attributes.access = kAccess;
  attributes.requested_key = next_key_++;
  attributes.iface = FI_HMEM_CUDA;
  attributes.device.cuda = memory.gpu;
  fid_mr* registration = nullptr;
  const int code = fi_mr_regattr(domain_.get(), &attributes, FI_MR_DMABUF, &registration);
  return adopt(code, registration, result);
#else
  static_cast<void>(memory);
  static_cast<void>(result);
  return FI_ENOSYS;
#endif
}

int LibfabricRail::enter_interface(const DeviceMemory& memory, Handle<fid_mr>& result) noexcept {
  const iovec all{memory.memory.data(), memory.memory.size()};
  fi_mr_attr attributes{};
  attributes.mr_iov = &all;
  attributes.iov_count = 1;
  attributes.access = kAccess;
  attributes.requested_key = next_key_++;
  attributes.iface = memory.gpu < 0 ? FI_HMEM_SYSTEM : FI_HMEM_CUDA;
  attributes.device.cuda = memory.gpu < 0 ? 0 : memory.gpu;
  fid_mr* registration = nullptr;
  const int code = fi_mr_regattr(domain_.get(), &attributes, 0, &registration);
  return adopt(code, registration, result);
}

}  // namespace weft::fabric
