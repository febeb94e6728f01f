// The table of personas.
//
// Threads: constants.
#include "loom/src/persona.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "loom/src/topology.hpp"

namespace loom {
namespace {

constexpr std::uint64_t kCaps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
                                FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SOURCE | FI_LOCAL_COMM |
                                FI_REMOTE_COMM | FI_HMEM;
constexpr std::uint64_t kAtomicCaps = kCaps | FI_ATOMIC;
constexpr std::uint64_t kBasicModes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
constexpr std::size_t kUnlimited = ~std::size_t{0};
constexpr std::size_t kGiB = std::size_t{1} << 30U;

// libfabric 2.6: prov/efa/src/efa_prov_info.c, efa_user_info.c, efa_rma.c, efa_msg.c.
constexpr FabricKind kEfaDirect{
    .name = "efa-direct",
    .domain_suffix = "-rdm",
    .caps = kCaps,
    .demanded_mode = FI_CONTEXT2,
    .mr_mode = kBasicModes | FI_MR_LOCAL,
    .message_order = 0,
    .progress = FI_PROGRESS_AUTO,
    .resource_mgmt = FI_RM_ENABLED,
    .guards_queues = false,   // docs/efa_fabric_comparison.md: "doesn't have that protection"
    .refuses_unknown = true,  // fi_efa(7), "RMA operations"
    .address_format = FI_ADDR_EFA,
    .protocol = FI_PROTO_EFA,
    .cq_data_bytes = 4,
    .key_bytes = 4,
    .message_bytes_max = 8192,
    .rma_bytes_max = kGiB,
    .inject_bytes = 32,
    .injects_writes = false,
    .data_may_take_receives = true,
    .writes_carry_data = true,
    .has_protocol = false,
    .orders_unasked = false,
    .takes_p2p_option = true,
    .queue_entries = 12288,
    .queue_entries_least = 1,
    .connection_receives = 0,
    .cpu_copied_bytes = 0,
    .needs_descriptors = true,
    .sleeps = true,
};

// libfabric 2.6: prov/efa/src/rdm. Offered behind efa-direct, and alone where hints leave
// efa-direct out.
constexpr FabricKind kEfaRdm{
    .name = "efa",
    .domain_suffix = "-rdm",
    .caps = kCaps,
    .demanded_mode = 0,
    .mr_mode = kBasicModes,
    .message_order = FI_ORDER_SAS,
    .progress = FI_PROGRESS_MANUAL,
    .resource_mgmt = FI_RM_ENABLED,
    .guards_queues = true,
    .refuses_unknown = false,
    .address_format = FI_ADDR_EFA,
    .protocol = FI_PROTO_EFA,
    .cq_data_bytes = 4,
    .key_bytes = 4,
    .message_bytes_max = kUnlimited,
    .rma_bytes_max = kUnlimited,
    .inject_bytes = 3984,
    .injects_writes = true,
    .data_may_take_receives = false,
    .writes_carry_data = true,
    .has_protocol = true,
    .orders_unasked = false,
    .takes_p2p_option = true,
    .queue_entries = 8192,
    .queue_entries_least = 8192,
    .connection_receives = 0,
    .cpu_copied_bytes = 0,
    .needs_descriptors = false,
    .sleeps = true,
};

// libfabric 2.6: prov/cxi/include/cxip.h, src/cxip_rma.c, cxip_info.c.
constexpr FabricKind kCxi{
    .name = "cxi",
    .domain_suffix = "",
    .caps = kAtomicCaps,
    .demanded_mode = 0,
    .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
    .message_order = FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW,
    .progress = FI_PROGRESS_MANUAL,
    .resource_mgmt = FI_RM_ENABLED,
    .guards_queues = true,
    .refuses_unknown = false,
    .address_format = FI_ADDR_CXI,
    .protocol = FI_PROTO_CXI,
    .cq_data_bytes = 8,
    .key_bytes = 8,
    .message_bytes_max = 4 * kGiB - 1,
    .rma_bytes_max = 4 * kGiB - 1,
    .inject_bytes = 192,
    .injects_writes = true,
    .data_may_take_receives = false,
    .writes_carry_data = false,
    .has_protocol = false,
    .orders_unasked = false,
    .takes_p2p_option = false,
    .queue_entries = 131072,
    .queue_entries_least = 1,
    .connection_receives = 0,
    .cpu_copied_bytes = 224,
    .needs_descriptors = false,
    .sleeps = true,
};

// libfabric 1.17: prov/rxm over prov/verbs. Rxm copies what is injected into a buffer of its own
// (FI_OFI_RXM_BUFFER_SIZE), sends and writes; a receiver without a buffer is tried again without
// end (rnr_retry of 7). Under the name verbs, as libfabric composes names with a semicolon itself.
constexpr FabricKind kVerbsRxm{
    .name = "IB-0xfe80000000000000",
    .domain_suffix = "",
    .caps = kCaps,
    .demanded_mode = 0,
    .mr_mode = kBasicModes | FI_MR_LOCAL,
    .message_order = FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RAW,
    .progress = FI_PROGRESS_MANUAL,
    .resource_mgmt = FI_RM_ENABLED,
    .guards_queues = true,
    .refuses_unknown = false,
    .address_format = FI_ADDR_STR,
    .protocol = FI_PROTO_RXM,
    .cq_data_bytes = 4,
    .key_bytes = 4,
    .message_bytes_max = kGiB,
    .rma_bytes_max = kGiB,
    .inject_bytes = 16384,
    .injects_writes = true,
    .data_may_take_receives = false,
    .writes_carry_data = true,
    .has_protocol = false,
    .orders_unasked = true,
    .takes_p2p_option = false,
    .queue_entries = 65536,
    .queue_entries_least = 1,
    .connection_receives = 128,
    .cpu_copied_bytes = 0,
    .needs_descriptors = true,
    .sleeps = true,
};

constexpr std::array kEfaKinds{kEfaDirect, kEfaRdm};
constexpr std::array kEfaDirectKinds{kEfaDirect};
constexpr std::array kEfaRdmKinds{kEfaRdm};
constexpr std::array kCxiKinds{kCxi};
constexpr std::array kVerbsKinds{kVerbsRxm};

constexpr std::array kPersonas{
    Persona{"loom", "loom", "loom", "loom{}", false, 0x1d0f, 0xefa2, "infiniband", kEfaDirectKinds},
    Persona{"efa", "efa", "efa", "rdmap{}s0", true, 0x1d0f, 0xefa2, "infiniband", kEfaKinds},
    Persona{"efa-direct", "efa", "efa", "rdmap{}s0", true, 0x1d0f, 0xefa2, "infiniband",
            kEfaDirectKinds},
    Persona{"efa-rdm", "efa", "efa", "rdmap{}s0", true, 0x1d0f, 0xefa1, "infiniband", kEfaRdmKinds},
    Persona{"cxi", "cxi", "cxi_core", "cxi{}", false, 0x17db, 0x0501, "cxi", kCxiKinds},
    Persona{"verbs", "verbs", "mlx5_core", "mlx5_{}", false, 0x15b3, 0x1021, "infiniband",
            kVerbsKinds},
};

}  // namespace

std::span<const Persona> personas() {
  return kPersonas;
}

const Persona* find_persona(std::string_view name) {
  const auto* const found = std::ranges::find(kPersonas, name, &Persona::name);
  return found == kPersonas.end() ? nullptr : found;
}

std::string persona_names() {
  std::string names;
  for (const Persona& persona : kPersonas) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", persona.name);
  }
  return names;
}

std::string nic_name(const Persona& persona, std::size_t index) {
  return fmt::format(fmt::runtime(persona.nic_format),
                     persona.nic_by_bus ? std::size_t{bus_of(index)} : index);
}

}  // namespace loom
