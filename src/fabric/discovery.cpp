#include "src/fabric/discovery.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/fabric/libfabric.hpp"
#include "src/fabric/libfabric_rail.hpp"
#include "src/fabric/native_info.hpp"
#include "src/fabric/quirks.hpp"
#include "src/fabric/start.hpp"

namespace weft::fabric {
namespace {

// The modes and capabilities that Weft supports; the provider clears those that it does not need (fi_getinfo(3)).
// FI_RX_CQ_DATA is left out. An EFA that is given it disables delivery of immediate data without a receive buffer, so
// every piece of a put_signal would consume one. An EFA without that feature then offers its fabric "efa", which
// keeps buffers of its own (fi_efa(7); prov/efa/src/efa_user_info.c of libfabric 2.6).
InfoHandle make_hints(const std::string& provider, bool on_device) {
  InfoHandle hints(libfabric().dupinfo(nullptr));  // an empty one
  WEFT_CHECK(hints != nullptr, "fi_dupinfo: out of memory");
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  if (on_device) {
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  if (!provider.empty()) {
    hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  }
  return hints;
}

// Registration by dma-buf belongs to a later API version, so it needs headers and a library of that version.
std::uint32_t api_version(bool on_device) {
#ifdef FI_MR_DMABUF
  if (on_device && FI_VERSION_GE(libfabric().version(), FI_VERSION(1, 20))) {
    return FI_VERSION(1, 20);
  }
#endif
  static_cast<void>(on_device);
  return FI_VERSION(1, 17);
}

InfoHandle get_info(const std::string& provider,
                    const char* source_address,
                    bool on_device = false) {
  start_libfabric();
  const InfoHandle hints = make_hints(provider, on_device);
  fi_info* found = nullptr;
  const std::uint64_t flags = source_address == nullptr ? 0 : FI_SOURCE;
  const int code = libfabric().getinfo(api_version(on_device), source_address, nullptr, flags,
                                       hints.get(), &found);
  return InfoHandle(code == 0 ? found : nullptr);
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

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
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
  nic.address = address_text(info);
  nic.pci = pci_text(info);
  if (info.nic != nullptr && info.nic->link_attr != nullptr) {
    nic.rate_bits_per_s = info.nic->link_attr->speed;
    nic.up = info.nic->link_attr->state != FI_LINK_DOWN;
  }
  nic.up = nic.up && interface_is_up(nic.name);
  nic.loopback = is_loopback(nic.address);
  nic.native =
      std::make_shared<const NativeInfo>(NativeInfo{InfoHandle(libfabric().dupinfo(&info))});
  return nic;
}

// Sorts "nic10" after "nic9": digits count by value. libfabric returns interfaces in no fixed order.
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
      if (!link_local && std::ranges::find(nics, nic.name, &NicInfo::name) == nics.end()) {
        nics.push_back(std::move(nic));
      }
    }
  }
  std::ranges::sort(nics, [](const NicInfo& a, const NicInfo& b) {
    return std::pair(a.loopback, natural_key(a.name)) < std::pair(b.loopback, natural_key(b.name));
  });
  return nics;
}

std::string choose_provider(const fi_info* list) {
  std::string best;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    const std::string name = info->fabric_attr->prov_name;
    const std::int32_t rank = quirk_of(name).rank;
    if (rank >= 0 && (best.empty() || rank > quirk_of(best).rank)) {
      best = name;
    }
  }
  return best;
}

// Replaces `nic` by the same NIC's entry of `list`.
bool take_entry(const fi_info* list, NicInfo& nic) {
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    const NicInfo found = describe(*info);
    const bool is_same = found.provider == nic.provider && found.address == nic.address &&
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
  const InfoHandle all = get_info(provider, nullptr, true);
  for (NicInfo& nic : nics) {
    if (!take_entry(all.get(), nic) && nic.name == nic.address) {
      take_entry(get_info(provider, nic.address.c_str(), true).get(), nic);
    }
  }
}

// Entries for addresses in WEFT_NICS that are not the first address of any NIC.
void add_named_addresses(const Config& config,
                         const std::string& provider,
                         std::vector<NicInfo>& nics) {
  std::istringstream names(config.nics);
  for (std::string name; std::getline(names, name, ',');) {
    std::array<std::byte, sizeof(in6_addr)> ignored{};
    const bool is_address = ::inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
                            ::inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
    if (!is_address || std::ranges::find(nics, name, &NicInfo::address) != nics.end()) {
      continue;
    }
    if (const InfoHandle info = get_info(provider, name.c_str()); info != nullptr) {
      NicInfo nic = describe(*info);
      nic.name = name;
      nics.push_back(std::move(nic));
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
  std::vector<std::string> names;
  const InfoHandle list = get_info("", nullptr);
  for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
    if (std::ranges::find(names, info->fabric_attr->prov_name) == names.end()) {
      names.emplace_back(info->fabric_attr->prov_name);
    }
  }
  return names;
}

std::vector<NicInfo> discover(const Config& config, DeviceUse device) {
  require_libfabric(config);
  const bool is_auto = config.provider == "auto" || config.provider.empty();
  const InfoHandle list = get_info(is_auto ? "" : config.provider, nullptr);
  if (!is_auto && list == nullptr) {
    fail(Status::InvalidArgument,
         "WEFT_PROVIDER={}: libfabric {} offers no such provider with RMA here; it offers {}",
         config.provider, library_version(), fmt::join(available_providers(), ", "));
  }
  if (list == nullptr) {
    return {};
  }
  const std::string provider =
      is_auto ? choose_provider(list.get()) : std::string(list->fabric_attr->prov_name);
  std::vector<NicInfo> nics = one_per_nic(list.get(), provider);
  add_named_addresses(config, provider, nics);
  if (device == DeviceUse::Always ||
      (device == DeviceUse::ByNic && quirk_of(provider).device != DeviceCopies::Host)) {
    take_device_memory(provider, nics);
  }
  return nics;
}

std::unique_ptr<Rail> open_rail(const NicInfo& nic, RailOptions options) {
  try {
    return std::make_unique<LibfabricRail>(nic, options);
  } catch (const Error& error) {
    if (nic.without_device == nullptr) {
      throw;
    }
    log::warn("{}; it is used without GPU memory (FI_HMEM)", error.what());
  }
  NicInfo plain = nic;
  plain.native = nic.without_device;
  return std::make_unique<LibfabricRail>(plain, options);
}

}  // namespace weft::fabric
