// Hints are matched as fi_getinfo(3) says. Structures are allocated here with room behind them:
// libraries newer than the headers of this build have members that theirs do not.
//
// Threads: any.
#include "loom/src/info.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "loom/src/address.hpp"
#include "loom/src/topology.hpp"

namespace loom {
namespace {

constexpr std::size_t kRoomForNewer = 128;
constexpr std::size_t kObjectsMax = 256;

template <typename T>
T* make() {
  return static_cast<T*>(
      std::calloc(1, sizeof(T) + kRoomForNewer));  // freed by fi_freeinfo, with free()
}

char* copy(std::string_view text) {
  return ::strndup(text.data(), text.size());
}

std::string domain_name(const Persona& persona, const FabricKind& kind, std::size_t index) {
  return nic_name(persona, index) + std::string(kind.domain_suffix);
}

std::uint64_t wanted_caps(const FabricKind& kind, const fi_info* hints) {
  // FI_HMEM changes what registration asks for, so it is given only to those who ask.
  const std::uint64_t asked = hints != nullptr ? hints->caps : 0;
  std::uint64_t caps = kind.caps;
  if ((asked & FI_HMEM) == 0) {
    caps &= ~std::uint64_t{FI_HMEM};
  }
  // prov/efa/src/efa_user_info.c: then there is no shm.
  if (kind.address_format == FI_ADDR_EFA && (asked & FI_REMOTE_COMM) != 0 &&
      (asked & FI_LOCAL_COMM) == 0) {
    caps &= ~std::uint64_t{FI_LOCAL_COMM};
  }
  return caps;
}

int wanted_mr_mode(const FabricKind& kind, std::uint64_t caps) {
  return static_cast<int>(kind.mr_mode | ((caps & FI_HMEM) != 0 ? FI_MR_HMEM : 0U));
}

// FI_MR_BASIC of clients of API 1.4 and older means the three bits.
std::uint64_t offered_mr_mode(int mr_mode) {
  const auto bits = static_cast<std::uint64_t>(mr_mode);
  return bits == FI_MR_BASIC ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY : bits;
}

// Whether peers shall reach the client's memory: FI_RMA without a direction means all.
bool is_target(std::uint64_t caps) {
  const bool has_direction = (caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
  return (caps & (FI_RMA | FI_ATOMIC)) != 0 &&
         (!has_direction || (caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0);
}

// What concerns memory that peers reach is asked only of those who want that:
// prov/util/src/util_attr.c.
std::uint64_t needed_mr_mode(const FabricKind& kind, std::uint64_t caps) {
  const auto all = static_cast<std::uint64_t>(wanted_mr_mode(kind, caps));
  if (is_target(caps)) {
    return all;
  }
  constexpr std::uint64_t kOfTargets =
      FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT;
  return (all & (FI_MR_LOCAL | FI_MR_HMEM)) != 0 ? all & ~kOfTargets : 0;
}

bool fits_domain(const FabricKind& kind, const fi_domain_attr& hints, std::uint64_t caps) {
  const std::uint64_t needed = needed_mr_mode(kind, caps);
  const bool progresses =
      hints.data_progress != FI_PROGRESS_AUTO || kind.progress == FI_PROGRESS_AUTO;
  // mr_key_size of hints is what the client can carry at least, never a maximum for the provider.
  return progresses && (needed & ~offered_mr_mode(hints.mr_mode)) == 0 &&
         hints.cq_data_size <= kind.cq_data_bytes;
}

// A client that offers FI_RX_CQ_DATA has buffers for immediate data (efa_user_info.c:
// efa_user_info_alter_direct).
std::uint64_t mode_of(const FabricKind& kind, const fi_info* hints) {
  const bool offers = hints == nullptr || (hints->mode & FI_RX_CQ_DATA) != 0;
  return kind.demanded_mode | (kind.data_may_take_receives && offers ? FI_RX_CQ_DATA : 0);
}

// efa-direct is not offered then; from 2.1 to 2.3 it was (efa_user_info.c).
bool lacks_receives(const Settings& settings, const FabricKind& kind, const fi_info& hints) {
  return kind.data_may_take_receives && settings.unsolicited == 0 &&
         settings.libfabric >= version_of(2, 4) && (hints.mode & FI_RX_CQ_DATA) == 0 &&
         (hints.caps & FI_RMA) != 0;
}

bool fits(const Settings& settings, const FabricKind& kind, const fi_info& hints) {
  if (lacks_receives(settings, kind, hints)) {
    return false;
  }
  if ((hints.caps & ~kind.caps) != 0 || (kind.demanded_mode & ~hints.mode) != 0) {
    return false;
  }
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != kind.address_format) {
    return false;
  }
  if (const auto* ep = hints.ep_attr; ep != nullptr) {
    const bool is_rdm = ep->type == FI_EP_UNSPEC || ep->type == FI_EP_RDM;
    const std::size_t most = std::max(kind.message_bytes_max, kind.rma_bytes_max);
    if (!is_rdm || ep->max_msg_size > most) {
      return false;
    }
  }
  if (const auto* tx = hints.tx_attr; tx != nullptr) {
    if ((tx->msg_order & ~kind.message_order) != 0 || tx->inject_size > kind.inject_bytes ||
        tx->size > settings.transmit_depth) {
      return false;
    }
  }
  if (const auto* rx = hints.rx_attr; rx != nullptr) {
    if ((rx->msg_order & ~kind.message_order) != 0 || rx->size > settings.receive_depth) {
      return false;
    }
  }
  if (const auto* fabric = hints.fabric_attr; fabric != nullptr && fabric->name != nullptr) {
    if (kind.name != fabric->name) {
      return false;
    }
  }
  return hints.domain_attr == nullptr || fits_domain(kind, *hints.domain_attr, hints.caps);
}

// Order has its price, so providers give what is asked for and no more (efa_user_info.c,
// cxip_info.c).
std::uint64_t order_for(const FabricKind& kind, const std::uint64_t* asked) {
  return kind.orders_unasked || asked == nullptr ? kind.message_order : kind.message_order & *asked;
}

void fill_transmit(fi_info& info,
                   const FabricKind& kind,
                   const Settings& settings,
                   const fi_info* hints) {
  fi_tx_attr& tx = *info.tx_attr;
  tx.caps = info.caps & (FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_HMEM);
  tx.mode = kind.demanded_mode;
  tx.op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE;
  const bool asks = hints != nullptr && hints->tx_attr != nullptr;
  tx.msg_order = order_for(kind, asks ? &hints->tx_attr->msg_order : nullptr);
  tx.inject_size = kind.inject_bytes;
  tx.size = settings.transmit_depth;
  tx.iov_limit = 2;
  tx.rma_iov_limit = 1;
}

void fill_receive(fi_info& info,
                  const FabricKind& kind,
                  const Settings& settings,
                  const fi_info* hints) {
  fi_rx_attr& rx = *info.rx_attr;
  rx.caps = info.caps & (FI_MSG | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE |
                         FI_SOURCE | FI_HMEM);
  rx.mode = info.mode;
  rx.op_flags = FI_COMPLETION;
  const bool asks = hints != nullptr && hints->rx_attr != nullptr;
  rx.msg_order = order_for(kind, asks ? &hints->rx_attr->msg_order : nullptr);
  rx.size = settings.receive_depth;
  rx.iov_limit = 2;
}

void fill_domain(fi_info& info,
                 const FabricKind& kind,
                 const Settings& settings,
                 const std::string& name) {
  const bool says_guarded = kind.guards_queues || settings.claims_guard != 0;
  fi_domain_attr& domain = *info.domain_attr;
  domain.name = copy(name);
  domain.threading = FI_THREAD_SAFE;
  domain.control_progress = kind.progress;
  domain.data_progress = kind.progress;
  domain.resource_mgmt = says_guarded ? kind.resource_mgmt : FI_RM_DISABLED;
  domain.av_type = FI_AV_TABLE;
  domain.mr_mode = wanted_mr_mode(kind, info.caps);
  domain.mr_key_size = kind.key_bytes;
  domain.cq_data_size = kind.cq_data_bytes;
  domain.cq_cnt = kObjectsMax;
  domain.ep_cnt = kObjectsMax;
  domain.tx_ctx_cnt = kObjectsMax;
  domain.rx_ctx_cnt = kObjectsMax;
  domain.max_ep_tx_ctx = 1;
  domain.max_ep_rx_ctx = 1;
  domain.cntr_cnt = kObjectsMax;
  domain.mr_iov_limit = 1;
  domain.mr_cnt = kKeysMax;
  domain.caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

fi_info* new_info(const FabricLink& link,
                  const FabricKind& kind,
                  std::size_t index,
                  const fi_info* hints) {
  const Settings& settings = link.settings();
  auto* info = make<fi_info>();
  info->tx_attr = make<fi_tx_attr>();
  info->rx_attr = make<fi_rx_attr>();
  info->ep_attr = make<fi_ep_attr>();
  info->domain_attr = make<fi_domain_attr>();
  info->fabric_attr = make<fi_fabric_attr>();
  info->caps = wanted_caps(kind, hints);
  info->mode = mode_of(kind, hints);
  info->addr_format = kind.address_format;
  const auto nic = static_cast<std::uint32_t>(link.first_nic() + index);
  const Address address = nic_address(nic);
  info->src_addrlen = address.size();
  info->src_addr = std::calloc(1, address.size());
  std::memcpy(info->src_addr, address.data(), address.size());
  fill_transmit(*info, kind, settings, hints);
  fill_receive(*info, kind, settings, hints);
  fill_domain(*info, kind, settings, domain_name(link.persona(), kind, index));
  if (hints != nullptr && hints->tx_attr != nullptr && hints->tx_attr->op_flags != 0) {
    info->tx_attr->op_flags = hints->tx_attr->op_flags;
  }
  if (hints != nullptr && hints->domain_attr != nullptr &&
      hints->domain_attr->threading != FI_THREAD_UNSPEC) {
    info->domain_attr->threading = hints->domain_attr->threading;
  }
  info->ep_attr->type = FI_EP_RDM;
  info->ep_attr->protocol = kind.protocol;
  info->ep_attr->protocol_version = 1;
  info->ep_attr->max_msg_size = std::max(kind.message_bytes_max, kind.rma_bytes_max);
  info->ep_attr->tx_ctx_cnt = 1;
  info->ep_attr->rx_ctx_cnt = 1;
  info->fabric_attr->name = copy(kind.name);
  info->nic = new_nic(link, nic);
  return info;
}

bool is_asked_for(const fi_info* hints, const fi_info& info) {
  const bool names_domain =
      hints != nullptr && hints->domain_attr != nullptr && hints->domain_attr->name != nullptr;
  return !names_domain || std::strcmp(hints->domain_attr->name, info.domain_attr->name) == 0;
}

// ---- fid_nic: fi_dupinfo copies it by control(FI_DUP), fi_freeinfo closes it.

struct OwnNic : fid_nic {
  const FabricLink* link = nullptr;
  std::uint32_t nic = 0;
};

int close_nic(fid* handle) {
  auto& nic = object_of_fid<OwnNic, fid_nic>(handle);
  for (char* text :
       {nic.device_attr->name, nic.device_attr->device_id, nic.device_attr->device_version,
        nic.device_attr->vendor_id, nic.device_attr->driver, nic.device_attr->firmware,
        nic.link_attr->address, nic.link_attr->network_type}) {
    std::free(text);
  }
  std::free(nic.device_attr);
  std::free(nic.bus_attr);
  std::free(nic.link_attr);
  delete &nic;
  return 0;
}

int control_nic(fid* handle, int command, void* argument) {
  const auto& nic = object_of_fid<OwnNic, fid_nic>(handle);
  if (command != FI_DUP) {
    return -FI_ENOSYS;
  }
  *static_cast<fid_nic**>(argument) = new_nic(*nic.link, nic.nic);
  return 0;
}

int describe_nic(const fid* handle, char* text, std::size_t bytes) {
  const auto* nic = reinterpret_cast<const fid_nic*>(handle);
  std::snprintf(text, bytes, "nic: %s, emulated by Loom\n", nic->device_attr->name);
  return 0;
}

fi_ops kNicOps{.size = sizeof(fi_ops),
               .close = close_nic,
               .bind = kNotThere,
               .control = control_nic,
               .ops_open = kNotThere,
               .tostr = describe_nic,
               .ops_set = kNotThere};

}  // namespace

fid_nic* new_nic(const FabricLink& link, std::uint32_t index) {
  const Persona& persona = link.persona();
  auto* nic = new OwnNic;
  *static_cast<fid_nic*>(nic) = {};
  nic->link = &link;
  nic->nic = index;
  nic->fid.fclass = FI_CLASS_NIC;
  nic->fid.ops = &kNicOps;
  nic->device_attr = make<fi_device_attr>();
  nic->bus_attr = make<fi_bus_attr>();
  nic->link_attr = make<fi_link_attr>();
  const std::size_t here = index - link.first_nic();
  nic->device_attr->name = copy(nic_name(persona, here));
  nic->device_attr->vendor_id = copy(fmt::format("0x{:04x}", persona.vendor));
  nic->device_attr->device_id = copy(fmt::format("0x{:04x}", persona.device));
  nic->device_attr->device_version = copy(fmt::format("0x{:04x}", persona.device));
  nic->device_attr->driver = copy(persona.driver);
  nic->device_attr->firmware = copy("emulated by Loom");
  nic->bus_attr->bus_type = FI_BUS_PCI;
  const PciPlace place = nic_place(link.settings().topology, here);
  nic->bus_attr->attr.pci.domain_id = place.domain;
  nic->bus_attr->attr.pci.bus_id = place.bus;
  nic->link_attr->address = copy(fmt::format("loom:{}", index));
  nic->link_attr->network_type = copy("Ethernet");
  nic->link_attr->mtu = link.settings().mtu_bytes;
  nic->link_attr->speed = link.settings().rate_bits_per_s;
  nic->link_attr->state = FI_LINK_UP;
  return nic;
}

// Whether this node has the fabric: a node with an old device, or an old rdma-core, lacks
// efa-direct.
bool has_kind(const FabricLink& link, const FabricKind& kind) {
  const Settings& settings = link.settings();
  const bool is_only_one = link.persona().kinds.size() == 1;
  const bool is_direct = kind.name == link.persona().kinds.front().name;
  const std::uint64_t node = link.first_nic() / settings.nics_per_node;
  return is_only_one || !is_direct ||
         (node < settings.direct_nodes && settings.libfabric >= version_of(2, 1));
}

int get_info(const FabricLink& link,
             std::uint32_t /*version*/,
             const fi_info* hints,
             fi_info** result) {
  fi_info* first = nullptr;
  fi_info** last = &first;
  for (const FabricKind& kind : link.persona().kinds) {
    if (!has_kind(link, kind) || (hints != nullptr && !fits(link.settings(), kind, *hints))) {
      continue;
    }
    for (std::size_t index = 0; index < link.nic_count(); ++index) {
      fi_info* info = new_info(link, kind, index, hints);
      if (!is_asked_for(hints, *info)) {
        fi_freeinfo(info);
        continue;
      }
      *last = info;
      last = &info->next;
    }
  }
  *result = first;
  return first == nullptr ? -FI_ENODATA : 0;
}

const FabricKind* kind_of(const Persona& persona, const fi_info& info) {
  for (const FabricKind& kind : persona.kinds) {
    if (info.fabric_attr != nullptr && info.fabric_attr->name != nullptr &&
        kind.name == info.fabric_attr->name) {
      return &kind;
    }
  }
  return nullptr;
}

bool find_nic(const FabricLink& link, const fi_info& info, std::uint32_t& nic) {
  for (const FabricKind& kind : link.persona().kinds) {
    for (std::size_t index = 0; index < link.nic_count(); ++index) {
      if (info.domain_attr != nullptr && info.domain_attr->name != nullptr &&
          domain_name(link.persona(), kind, index) == info.domain_attr->name) {
        nic = static_cast<std::uint32_t>(link.first_nic() + index);
        return true;
      }
    }
  }
  return false;
}

}  // namespace loom
