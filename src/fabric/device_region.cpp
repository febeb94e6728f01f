// How a rail registers GPU memory: by dma-buf, by libfabric's interface to the GPU's driver, or not
// at all.
//
// Control path, under the owner's lock. A rail registers it only if the NIC itself can access it. A
// provider that copies with CUDA from the progress thread may wait for a kernel that waits for that
// thread: a deadlock.
#include <cerrno>

#include "src/fabric/endpoint_limits.hpp"
#include "src/fabric/grown_structs.hpp"
#include "src/fabric/libfabric_rail.hpp"
#include "src/fabric/quirks.hpp"
#include "src/fabric/start.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kAccess =
    FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

constexpr const char* kOldDmaBuf = "dma-buf needs libfabric 1.20 or later";

// All but what says where the memory is.
GrownRegistration registration_of(const DeviceMemory& memory, std::uint64_t key) {
  GrownRegistration grown;
  fi_mr_attr& attributes = grown.attributes;
  attributes.iov_count = 1;
  attributes.access = kAccess;
  attributes.requested_key = key;
  attributes.iface = memory.gpu < 0 ? FI_HMEM_SYSTEM : FI_HMEM_CUDA;
  attributes.device.cuda = memory.gpu < 0 ? 0 : memory.gpu;
  return grown;
}

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
  const bool copies = quirk_of(provider_).copies_small_writes;
  if (copies && small_writes_are_left_to_nic()) {
    return;  // with the option, Slingshot's provider would want all GPU memory mapped by gdrcopy
  }
  bool permitted = false;
  const int error = -fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, kOptCudaApiPermitted, &permitted,
                               sizeof(permitted));
  // Other providers that reject it need CUDA for messages alone; those are in host memory here.
  small_copies_error_ = copies ? error : 0;
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
  if (small_copies_error_ != 0) {
    return "provider " + provider_ + " of libfabric " + library_version() +
           " copies small writes with CUDA calls, which can deadlock with a kernel that waits "
           "(FI_OPT_CUDA_API_PERMITTED: " +
           error_words(small_copies_error_) + "); use libfabric 2.3 or later, or gdrcopy";
  }
  return "";
}

DeviceRegion LibfabricRail::add_device_region(const DeviceMemory& memory) {
  if (const std::string refusal = memory.gpu < 0 ? "" : device_refusal(); !refusal.empty()) {
    return {.way = DeviceWay::None, .key = {}, .why = refusal};
  }
  std::string no_dma_buf = memory.no_dma_buf;
  RegionKey key;
  if (memory.dma_buf >= 0) {
    no_dma_buf = take_region(DeviceWay::DmaBuf, memory, key);
    if (no_dma_buf.empty()) {
      return {.way = DeviceWay::DmaBuf,
              .key = key,
              .why = "the kernel has given the NIC the GPU's pages"};
    }
  }
  const std::string why_not = take_region(DeviceWay::Interface, memory, key);
  if (!why_not.empty()) {
    return {.way = DeviceWay::None, .key = {}, .why = why_not + "; no dma-buf: " + no_dma_buf};
  }
  return {.way = DeviceWay::Interface, .key = key, .why = "no dma-buf: " + no_dma_buf};
}

std::string LibfabricRail::take_region(DeviceWay way, const DeviceMemory& memory, RegionKey& key) {
  const bool is_dma_buf = way == DeviceWay::DmaBuf;
  if (is_dma_buf && quirk_of(provider_).misreads_dma_buf) {
    return "provider " + provider_ + " makes it itself, and some versions misread one";
  }
  if (is_dma_buf && api_version_ < kFirstWithDmaBuf) {
    return kOldDmaBuf;
  }
  Region region{.bytes = memory.memory.size(), .registration = {}};
  const int error = is_dma_buf ? enter_dma_buf(memory, region.registration)
                               : enter_interface(memory, region.registration);
  if (error != 0) {
    return "fi_mr_regattr failed: " + error_words(error);
  }
  key = key_of(memory.memory.data(), region.registration.get());
  regions_.insert_or_assign(memory.memory.data(), std::move(region));
  std::string fault = proof_->prove(memory, key);
  if (!fault.empty()) {
    drop_region(memory.memory);
  }
  return fault;
}

int LibfabricRail::enter_dma_buf(const DeviceMemory& memory, Handle<fid_mr>& result) noexcept {
  const DmaBufPages pages{.descriptor = memory.dma_buf,
                          .offset = memory.dma_buf_offset,
                          .bytes = memory.memory.size(),
                          .base_address = memory.memory.data() - memory.dma_buf_offset};
  GrownRegistration grown = registration_of(memory, next_key(kAccess));
  // The two pointers share their place: fi_mr(3).
  grown.attributes.mr_iov = reinterpret_cast<const iovec*>(&pages);
  fid_mr* registration = nullptr;
  const int code = fi_mr_regattr(domain_.get(), &grown.attributes, kDmaBufFlag, &registration);
  return adopt(code, registration, result);
}

int LibfabricRail::enter_interface(const DeviceMemory& memory, Handle<fid_mr>& result) noexcept {
  const iovec all{memory.memory.data(), memory.memory.size()};
  GrownRegistration grown = registration_of(memory, next_key(kAccess));
  grown.attributes.mr_iov = &all;
  fid_mr* registration = nullptr;
  const int code = fi_mr_regattr(domain_.get(), &grown.attributes, 0, &registration);
  return adopt(code, registration, result);
}

}  // namespace weft::fabric
