#include "src/fabric/discovery.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/networks.hpp"
#include "src/fabric/libfabric.hpp"
#include "src/fabric/libfabric_rail.hpp"
#include "src/fabric/native_info.hpp"
#include "src/fabric/quirks.hpp"
#include "src/fabric/start.hpp"
#include "src/fabric/user_filters.hpp"

namespace weft::fabric {
namespace {

// What narrows the hints beyond what Weft needs.
struct Wishes {
  std::string provider;
  std::string fabric;
  bool on_device = false;
  // Of several entries of a NIC, those that carry immediate data, which psm3 offers only if it is
  // asked for; and what ProviderQuirk::for_other_nodes says.
  bool is_best = true;
};

// The modes and capabilities that Weft supports; the provider clears those that it does not need
// (fi_getinfo(3)). FI_RX_CQ_DATA is left out. An EFA that is given it disables delivery of
// immediate data without a receive buffer, so every piece of a put_signal would consume one. An EFA
// without that feature then offers its fabric "efa", which keeps buffers of its own (fi_efa(7);
// prov/efa/src/efa_user_info.c of libfabric 2.6).
InfoHandle make_hints(const Wishes& wishes) {
  InfoHandle hints(libfabric().dupinfo(nullptr));  // an empty one
  WEFT_CHECK(hints != nullptr, "fi_dupinfo: out of memory");
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  if (wishes.is_best) {
    hints->caps |= quirk_of(wishes.provider).for_other_nodes ? FI_REMOTE_COMM : 0;
    hints->domain_attr->cq_data_size = sizeof(std::uint32_t);
  }
  if (wishes.on_device) {
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  if (!wishes.provider.empty()) {
    hints->fabric_attr->prov_name = ::strdup(wishes.provider.c_str());
  }
  if (!wishes.fabric.empty()) {
    hints->fabric_attr->name = ::strdup(wishes.fabric.c_str());
  }
  return hints;
}

InfoHandle get_info(const Wishes& wishes, const char* source_address = nullptr) {
  start_libfabric();
  const InfoHandle hints = make_hints(wishes);
  fi_info* found = nullptr;
  const std::uint64_t flags = source_address == nullptr ? 0 : FI_SOURCE;
  const int code = libfabric().getinfo(api_version(libfabric().version()), source_address, nullptr,
                                       flags, hints.get(), &found);
  return InfoHandle(code == 0 ? found : nullptr);
}

// The best entries; if there are none, all that Weft can use.
InfoHandle get_best_info(Wishes wishes, const char* source_address = nullptr) {
  wishes.is_best = true;
  InfoHandle found = get_info(wishes, source_address);
  if (found == nullptr) {
    wishes.is_best = false;
    found = get_info(wishes, source_address);
  }
  return found;
}

std::string address_text(const fi_info& info) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (info.src_addr == nullptr) {
    return "";
  }
  if (info.addr_format == FI_SOCKADDR_IN) {
    const auto* in = static_cast<const sockaddr_in*>(info.src_addr);
    ::inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size());
  } else if (info.addr_format == FI_SOCKADDR_IN6) {
    const auto* in6 = static_cast<const sockaddr_in6*>(info.src_addr);
    ::inet_ntop(AF_INET6, &in6->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

// IFF_RUNNING of a network interface (netdevice(7)); true if `name` is not a network interface.
bool interface_is_up(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return true;
  }
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return true;
  }
  ifreq request{};
  std::memcpy(request.ifr_name, name.c_str(), name.size());
  const bool known = ::ioctl(socket, SIOCGIFFLAGS, &request) == 0;
  ::close(socket);
  return !known || (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

std::string pci_text(const fi_info& info) {
  if (info.nic == nullptr || info.nic->bus_attr == nullptr ||
      info.nic->bus_attr->bus_type != FI_BUS_PCI) {
    return "";
  }
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain_id, pci.bus_id, pci.device_id,
                     pci.function_id);
}

NicInfo describe(const fi_info& info) {
  NicInfo nic;
  const char* device = info.nic != nullptr && info.nic->device_attr != nullptr
                           ? info.nic->device_attr->name
                           : nullptr;
  const char* domain = info.domain_attr->name;
  nic.name = device != nullptr ? device : domain != nullptr ? domain : "";
  nic.provider = info.fabric_attr->prov_name;
  nic.fabric = info.fabric_attr->name != nullptr ? info.fabric_attr->name : "";
  nic.address = address_text(info);
  nic.pci = pci_text(info);
  if (info.nic != nullptr && info.nic->link_attr != nullptr) {
    nic.rate_bits_per_s = info.nic->link_attr->speed;
    nic.up = info.nic->link_attr->state != FI_LINK_DOWN;
  }
  nic.up = nic.up && interface_is_up(nic.name);
  nic.loopback = is_loopback_address(nic.address);
  nic.native =
      std::make_shared<const NativeInfo>(NativeInfo{InfoHandle(libfabric().dupinfo(&info))});
  return nic;
}

// Sorts "nic10" after "nic9": digits count by value. libfabric returns interfaces in no fixed
// order.
std::vector<std::pair<std::string, std::uint64_t>> natural_key(const std::string& name) {
  std::vector<std::pair<std::string, std::uint64_t>> key;
  for (std::size_t i = 0; i < name.size();) {
    std::string text;
    while (i < name.size() && (name[i] < '0' || name[i] > '9')) {
      text += name[i++];
    }
    std::uint64_t number = 0;
    while (i < name.size() && name[i] >= '0' && name[i] <= '9') {
      number = number * 10 + static_cast<std::uint64_t>(name[i++] - '0');
    }
    key.emplace_back(std::move(text), number);
  }
  return key;
}

void note_fabric(NicInfo& nic, const std::string& fabric) {
  if (std::ranges::find(nic.fabrics, fabric) == nic.fabrics.end()) {
    nic.fabrics.push_back(fabric);
  }
}

// One entry per NIC: the first address of each, IPv4 before IPv6.
std::vector<NicInfo> one_per_nic(const fi_info* list, const std::string& provider) {
  std::vector<NicInfo> nics;
  for (const std::uint32_t format :
       {std::uint32_t{FI_SOCKADDR_IN}, std::uint32_t{FI_FORMAT_UNSPEC}}) {
    for (const fi_info* info = list; info != nullptr; info = info->next) {
      const bool wanted = info->fabric_attr->prov_name == provider &&
                          (format == FI_FORMAT_UNSPEC || info->addr_format == format);
      if (!wanted) {
        continue;
      }
      NicInfo nic = describe(*info);
      const bool link_local = nic.address.starts_with("fe80:");
      const auto known = std::ranges::find(nics, nic.name, &NicInfo::name);
      if (known != nics.end()) {
        note_fabric(*known, nic.fabric);
      } else if (!link_local) {
        note_fabric(nic, nic.fabric);
        nics.push_back(std::move(nic));
      }
    }
  }
  std::ranges::sort(nics, [](const NicInfo& a, const NicInfo& b) {
    return std::pair(a.loopback, natural_key(a.name)) < std::pair(b.loopback, natural_key(b.name));
  });
  return nics;
}

std::vector<std::string> providers_of(const fi_info* list) {
  std::vector<std::string> names;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (std::ranges::find(names, info->fabric_attr->prov_name) == names.end()) {
      names.emplace_back(info->fabric_attr->prov_name);
    }
  }
  return names;
}

// Replaces `nic` by the same NIC's entry of `list`.
bool take_entry(const fi_info* list, NicInfo& nic) {
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    const NicInfo found = describe(*info);
    const bool is_same = found.provider == nic.provider && found.fabric == nic.fabric &&
                         found.address == nic.address &&
                         (found.name == nic.name || nic.name == nic.address);
    if (is_same) {
      nic.without_device = std::exchange(nic.native, found.native);
      return true;
    }
  }
  return false;
}

// NICs that support FI_HMEM are opened with it; the others stay unchanged.
void take_device_memory(const std::string& provider, std::vector<NicInfo>& nics) {
  const Wishes wishes{.provider = provider, .on_device = true};
  const InfoHandle all = get_best_info(wishes);
  for (NicInfo& nic : nics) {
    if (!take_entry(all.get(), nic) && nic.name == nic.address) {
      take_entry(get_best_info(wishes, nic.address.c_str()).get(), nic);
    }
  }
}

// An entry for an address that is not the first one of any NIC.
void add_address(const std::string& provider,
                 const std::string& address,
                 const std::string& name,
                 std::vector<NicInfo>& nics) {
  if (std::ranges::find(nics, address, &NicInfo::address) != nics.end()) {
    return;
  }
  if (const InfoHandle info = get_best_info({.provider = provider}, address.c_str());
      info != nullptr) {
    NicInfo nic = describe(*info);
    nic.name = name;
    nics.push_back(std::move(nic));
  }
}

// Those in WEFT_NICS, also by their network.
void add_named_addresses(const Config& config,
                         const std::string& provider,
                         std::vector<NicInfo>& nics) {
  std::istringstream names(config.nics);
  for (std::string name; std::getline(names, name, ',');) {
    if (is_address(name)) {
      add_address(provider, name, name, nics);
    } else if (const auto network = Network::parse(name)) {
      for (const InterfaceAddress& own : own_addresses()) {
        if (network->contains(own.address)) {
          add_address(provider, own.address, own.address, nics);
        }
      }
    }
  }
}

// Where routers announce a host's address (BGP to the host), it is on the loopback interface, whose
// first address is 127.0.0.1.
void add_address_on_loopback(const std::string& provider, std::vector<NicInfo>& nics) {
  const auto own_loopback = std::ranges::find_if(nics, &NicInfo::loopback);
  if (own_loopback == nics.end()) {
    return;  // the provider uses no addresses of interfaces
  }
  const std::string name = own_loopback->name;
  for (const InterfaceAddress& own : own_addresses()) {
    if (own.is_on_loopback && !is_loopback_address(own.address)) {
      add_address(provider, own.address, name, nics);
      return;
    }
  }
}

}  // namespace

void check(long code, const char* action, const std::string& object, const char* hint) {
  if (code < 0) {
    fail("{} failed on {}: {}; {}", action, object, error_words(static_cast<int>(-code)), hint);
  }
}

std::vector<std::string> available_providers() {
  return providers_of(get_info({.is_best = false}).get());
}

std::string offered_text() {
  const std::vector<std::string> names = available_providers();
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::uint32_t api_version(std::uint32_t library_version) {
  return std::min<std::uint32_t>(library_version, FI_VERSION(1, 20));
}

std::vector<std::string> fabrics_of(const std::vector<NicInfo>& nics) {
  if (nics.empty() || !quirk_of(nics.front().provider).has_fabrics) {
    return {};
  }
  std::vector<std::string> common = nics.front().fabrics;
  for (const NicInfo& nic : nics) {
    std::erase_if(common, [&nic](const std::string& fabric) {
      return std::ranges::find(nic.fabrics, fabric) == nic.fabrics.end();
    });
  }
  return common;
}

std::string common_fabric(const std::vector<std::vector<std::string>>& offers) {
  const auto is_everywhere = [&offers](const std::string& fabric) {
    return std::ranges::all_of(offers, [&fabric](const std::vector<std::string>& one) {
      return std::ranges::find(one, fabric) != one.end();
    });
  };
  const auto found = std::ranges::find_if(offers.front(), is_everywhere);
  return found == offers.front().end() ? "" : *found;
}

std::vector<NicInfo> discover(const Config& config, const DiscoverRequest& request) {
  require_libfabric(config);
  start_libfabric({.pe_count = request.pe_count, .uses_gpu = request.device != DeviceUse::No});
  const bool is_auto = config.provider == "auto" || config.provider.empty();
  InfoHandle list =
      get_best_info({.provider = is_auto ? "" : config.provider, .fabric = request.fabric});
  if (!is_auto && list == nullptr) {
    fail(Status::InvalidArgument,
         "WEFT_PROVIDER={}: libfabric {} offers no such provider with RMA here; it offers {}{}",
         config.provider, library_version(), offered_text(), user_filter_hint());
  }
  if (list == nullptr) {
    return {};
  }
  const std::string provider =
      is_auto ? best_provider(providers_of(list.get())) : std::string(list->fabric_attr->prov_name);
  if (is_auto && quirk_of(provider).for_other_nodes) {
    list = get_best_info({.provider = provider, .fabric = request.fabric});
  }
  std::vector<NicInfo> nics = one_per_nic(list.get(), provider);
  add_address_on_loopback(provider, nics);
  add_named_addresses(config, provider, nics);
  const bool takes_device =
      request.device == DeviceUse::Always ||
      (request.device == DeviceUse::ByNic && quirk_of(provider).device != DeviceCopies::Host);
  if (takes_device) {
    take_device_memory(provider, nics);
  }
  return nics;
}

namespace {

// With the variables that the provider reads at this moment; without them, if it cannot be opened
// so.
std::unique_ptr<Rail> open_entry(const NicInfo& nic, RailOptions options) {
  const std::vector<Variable> variables = variables_at_opening(nic.provider, start_facts());
  if (!variables.empty()) {
    try {
      const ScopedVariables set(variables);
      return std::make_unique<LibfabricRail>(nic, options);
    } catch (const Error& error) {
      log::info("{}; it is tried without {}", error.what(), variables.front().name);
    }
  }
  return std::make_unique<LibfabricRail>(nic, options);
}

}  // namespace

std::unique_ptr<Rail> open_rail(const NicInfo& nic, RailOptions options) {
  try {
    return open_entry(nic, options);
  } catch (const Error& error) {
    if (nic.without_device == nullptr) {
      throw;
    }
    log::warn("{}; it is used without GPU memory (FI_HMEM)", error.what());
  }
  NicInfo plain = nic;
  plain.native = nic.without_device;
  return open_entry(plain, options);
}

}  // namespace weft::fabric
