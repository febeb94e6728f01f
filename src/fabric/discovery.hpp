// The NICs that libfabric can open here, one entry per NIC and address, and the opening of one.
//
// Control path; any thread.
// No libfabric type leaves this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {

struct NativeInfo;  // holds the fi_info; defined in discovery.cpp's private header

struct NicInfo {
  std::string name;      // "eth0", "rdmap79s0"
  std::string provider;  // "tcp;ofi_rxm", "efa"
  std::string address;   // "10.0.0.1", or the provider's own text
  std::string pci;       // "0000:4f:00.0", or ""
  std::uint64_t rate_bits_per_s = 0;
  bool up = true;
  bool loopback = false;
  std::shared_ptr<const NativeInfo> native;
  std::shared_ptr<const NativeInfo>
      without_device;  // if `native` asks for FI_HMEM: the same without it
};

// Whether rails are to take memory of GPUs (FI_HMEM), which can cost them something of their own.
enum class DeviceUse : std::uint8_t {
  No,
  ByNic,   // where the NIC reaches it by itself: see quirks.hpp
  Always,  // also where the provider copies; for tests
};

// All NICs of the provider that WEFT_PROVIDER names, or of the best one that is here; loopback last.
// Addresses in WEFT_NICS that are not any NIC's first address (127.0.0.2) get entries of their own.
// Empty if there is none. Throws Error if the named provider is not there, listing those that are.
// A NIC without FI_HMEM is listed all the same, and opened without it.
[[nodiscard]] std::vector<NicInfo> discover(const Config& config, DeviceUse device = DeviceUse::No);

// The providers that fi_getinfo(3) offers here, for messages and weft-info.
[[nodiscard]] std::vector<std::string> available_providers();

// "1.17": of the library that is loaded, not of the headers.
[[nodiscard]] std::string library_version();

// A provider other than it is, for tests.
struct RailOptions {
  bool registers_all = false;  // it wants all local memory registered (FI_MR_LOCAL)
  bool is_blind = false;       // its queues have no wait object
};

// Opens a NIC: fabric, domain, endpoint, address vector, completion queue. Throws Error. If it does not open
// with FI_HMEM, it is opened without, with a warning.
[[nodiscard]] std::unique_ptr<Rail> open_rail(const NicInfo& nic, RailOptions options = {});

}  // namespace weft::fabric
