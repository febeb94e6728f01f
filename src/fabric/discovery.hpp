// The NICs that libfabric can open here, one entry per NIC and address, and the function that opens
// one.
//
// Control path; any thread.
// No libfabric type is visible outside this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/library_search.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {

struct NativeInfo;  // holds the fi_info; defined in discovery.cpp's private header

struct NicInfo {
  std::string name;      // "eth0", "rdmap79s0"
  std::string provider;  // "tcp;ofi_rxm", "efa"
  std::string fabric;    // fi_fabric_attr.name: "10.0.0.0/24", "efa-direct"
  std::string address;   // "10.0.0.1", or the provider's own format
  std::string pci;       // "0000:4f:00.0", or ""
  std::uint64_t rate_bits_per_s = 0;
  bool up = true;
  bool loopback = false;
  std::vector<std::string> fabrics;  // all on which the provider offers this NIC
  std::shared_ptr<const NativeInfo> native;
  std::shared_ptr<const NativeInfo>
      without_device;  // if `native` requests FI_HMEM: the entry without it
};

// Whether rails are to register GPU memory (FI_HMEM), which can have a cost of its own.
enum class DeviceUse : std::uint8_t {
  No,
  ByNic,   // if the NIC accesses it directly: see quirks.hpp
  Always,  // also if the provider copies; for tests
};

struct DiscoverRequest {
  DeviceUse device = DeviceUse::No;
  std::size_t pe_count = 1;  // of the job: providers size queues by it
  std::string fabric = "";   // only NICs on it; "": each NIC on the first that the provider offers
};

// Opens libfabric, unless it is open: the file that WEFT_LIBFABRIC names, or the first that serves
// of the loader's own search and the folders of the installers for EFA and Slingshot. Finding none
// is not an error here. Throws Error if another file is named than the one that this process has
// opened.
[[nodiscard]] LibrarySearch open_libfabric(const Config& config);

// All NICs of the provider that WEFT_PROVIDER names, or of the best available one; loopback last.
// Addresses and networks in WEFT_NICS whose addresses are not the first of any NIC (127.0.0.2) get
// their own entries, and so does an address of the loopback interface that other hosts can reach.
// Empty if there is none.
// Throws Error if libfabric cannot be opened, naming what was tried, or if the named provider is
// not available, listing those that are. A NIC without FI_HMEM is listed too, and opened without
// it.
[[nodiscard]] std::vector<NicInfo> discover(const Config& config,
                                            const DiscoverRequest& request = {});

// The fabrics that all these NICs can be opened on, the best first, if their provider has several
// that do not understand each other: PEs must agree on one. Empty for other providers.
[[nodiscard]] std::vector<std::string> fabrics_of(const std::vector<NicInfo>& nics);

// The first of ours that all others offer, too: every PE gets the same answer if all name the
// better one first. Empty if there is none.
[[nodiscard]] std::string common_fabric(const std::vector<std::vector<std::string>>& offers);

// The providers that fi_getinfo(3) offers here, for messages and weft-info. After libfabric has
// been opened.
[[nodiscard]] std::vector<std::string> available_providers();

// The same as text, "none" where there is none.
[[nodiscard]] std::string offered_text();

// The version of the opened library ("1.17"), not of the headers.
[[nodiscard]] std::string library_version();

// Makes a provider behave like another one, for tests.
struct RailOptions {
  bool registers_all = false;  // requires all local memory to be registered (FI_MR_LOCAL)
  bool is_blind = false;       // its queues have no wait object
  bool keeps_descriptions =
      false;  // reads what describes an operation until that is complete (FI_ASYNC_IOV)
};

// Opens a NIC: fabric, domain, endpoint, address vector, completion queue. Throws Error. If opening
// with FI_HMEM fails, it opens the NIC without it and logs a warning.
[[nodiscard]] std::unique_ptr<Rail> open_rail(const NicInfo& nic, RailOptions options = {});

}  // namespace weft::fabric
