#include "src/fabric/quirks.hpp"

#include <algorithm>
#include <array>

namespace weft::fabric {
namespace {

using enum DeviceCopies;

constexpr std::array kQuirks{
    ProviderQuirk{
        .name = "efa",
        .rank = 100,
        .device = Nic,
        .has_fabrics = true,
        .for_other_nodes = true,
        .unguarded_fabric = "efa-direct",
        .known_senders_fabric = "efa-direct",
        .notes = "reliable but unordered; inline sends up to 32 bytes, often no inline writes; "
                 "bounded queues, so Full is common; RDMA write with 32 bits of immediate data. "
                 "GPU memory: takes a dma-buf; FI_OPT_FI_HMEM_P2P required forbids its copies by "
                 "CUDA; no inject of it. efa-direct claims FI_RM_ENABLED and leaves its completion "
                 "queue to the client",
        .source = "fi_efa(7): SRD, inject size, FI_PROGRESS_MANUAL, FI_HMEM; fi_endpoint(3): "
                  "FI_OPT_FI_HMEM_P2P; prov/efa/docs/efa_fabric_comparison.md of libfabric 2.6. "
                  "FI_HMEM tried on emulated NICs only"},
    ProviderQuirk{
        .name = "cxi",
        .rank = 100,
        .device = Nic,
        .queue_entries_min = 131072,
        .misreads_dma_buf = true,
        .copies_small_writes = true,
        .notes = "the job's VNI and service must match (SLINGSHOT_VNIS, FI_CXI_DEFAULT_VNI); "
                 "provider keys, regions bound to the endpoint; claims immediate data and refuses "
                 "it (-FI_EBADFLAGS, libfabric 1.22 to 2.6); makes the dma-buf of GPU memory "
                 "itself; messages up to 4 GiB - 1; answers -FI_EAGAIN while its completion queue "
                 "is nearly full",
        .source = "fi_cxi(7): authorization keys, FI_MR_PROV_KEY, FI_MR_ENDPOINT, HMEM, "
                  "FI_CXI_DEFAULT_CQ_SIZE, FI_CXI_CQ_FILL_PERCENT; prov/cxi/src/cxip_mr.c of "
                  "libfabric 1.22 and 2.4. Tried on emulated NICs only"},
    ProviderQuirk{
        .name = "verbs;ofi_rxm",
        .rank = 90,
        .device = Nic,
        .notes = "connections are opened on first use; local registration needed; RMA of GPU "
                 "memory goes to the NIC (dma-buf, or the module nvidia_peermem), only messages "
                 "are copied; receive buffers are shared by all connections (opening.hpp)",
        .source = "fi_verbs(7): FI_MR_LOCAL; fi_rxm(7): connection management, "
                  "FI_OFI_RXM_USE_SRX. FI_HMEM never tried"},
    ProviderQuirk{.name = "psm3",
                  .rank = 80,
                  .connects_at_insert = true,
                  .notes = "own multi-rail (PSM3_MULTIRAIL) must stay off; carries immediate data "
                           "only if the hints ask for it; connects to a peer when its address is "
                           "inserted, unless FI_PSM3_LAZY_CONN=1",
                  .source = "fi_psm3(7): PSM3_MULTIRAIL, FI_PSM3_LAZY_CONN; "
                            "prov/psm3/psm3/psmx3_attr.c of libfabric 2.6"},
    ProviderQuirk{.name = "opx",
                  .rank = 70,
                  .notes = "Omni-Path; has FI_ASYNC_IOV: what describes an operation must live "
                           "until it is complete; no wait object. Never tried",
                  .source = "fi_opx(7); prov/opx/src/fi_opx_init.c of libfabric 2.6"},
    ProviderQuirk{.name = "tcp",
                  .rank = 50,
                  .kernel_sockets = true,
                  .is_tried = true,
                  .device = Host,
                  .notes = "native RDM endpoints from libfabric 1.18 on; asking for FI_ATOMIC "
                           "silently gives tcp;ofi_rxm; connects on first use (ms)",
                  .source = "fi_tcp(7); measured with 2.5 and 2.6"},
    ProviderQuirk{.name = "net",
                  .rank = 35,
                  .kernel_sockets = true,
                  .is_tried = true,
                  .device = Host,
                  .notes = "the native RDM tcp provider as 1.17 ships it: connects in 1 ms, but "
                           "its wait descriptor stays readable, so that waiting burns a core",
                  .source = "measured with 1.17: docs/decisions/0003"},
    ProviderQuirk{.name = "tcp;ofi_rxm",
                  .rank = 40,
                  .kernel_sockets = true,
                  .is_tried = true,
                  .device = Host,
                  .notes = "one write after a lost connection fails with ENOTCONN before it "
                           "reconnects",
                  .source = "fi_rxm(7); measured with 1.17: docs/decisions/0003"},
    ProviderQuirk{.name = "sockets",
                  .rank = -1,
                  .kernel_sockets = true,
                  .is_tried = true,
                  .device = Host,
                  .notes = "deprecated; does not leave by the NIC whose address the endpoint has",
                  .source = "fi_sockets(7); measured with 1.17"},
    ProviderQuirk{.name = "shm",
                  .rank = -1,
                  .device = Host,
                  .notes = "one node only; Weft maps memory instead",
                  .source = "fi_shm(7)"},
    ProviderQuirk{.name = "udp;ofi_rxd",
                  .rank = -1,
                  .device = Host,
                  .notes = "for tests: slow, software reliability",
                  .source = "fi_rxd(7)"},
    ProviderQuirk{.name = "udp",
                  .rank = -1,
                  .device = Host,
                  .notes = "datagrams only",
                  .source = "fi_udp(7)"},
    ProviderQuirk{
        .name = "psm", .rank = -1, .notes = "deprecated", .source = "libfabric 1.17 release notes"},
    ProviderQuirk{.name = "psm2",
                  .rank = -1,
                  .notes = "one endpoint a process on Omni-Path",
                  .source = "fi_psm2(7)"},
    ProviderQuirk{.name = "ofi_mrail",
                  .rank = -1,
                  .notes = "stripes below us; Weft does that itself",
                  .source = "fi_mrail(7)"},
    ProviderQuirk{.name = "lnx",
                  .rank = -1,
                  .notes = "links providers for tagged messages; has no RMA",
                  .source = "fi_lnx(7); prov/lnx/src/lnx_ep.c of libfabric 2.6"},
    ProviderQuirk{.name = "ucx",
                  .rank = -1,
                  .notes = "a second stack below libfabric on NICs that verbs opens itself; never "
                           "tried",
                  .source = "fi_ucx(7)"},
    ProviderQuirk{.name = "lpp",
                  .rank = -1,
                  .notes = "memory that PCIe shares among hosts; never tried",
                  .source = "fi_lpp(7)"},
};

constexpr ProviderQuirk kNeutral{.name = "", .notes = "not in the table; capabilities decide"};

}  // namespace

std::span<const ProviderQuirk> provider_quirks() {
  return kQuirks;
}

const ProviderQuirk& quirk_of(std::string_view provider) {
  const auto* const found = std::ranges::find(kQuirks, provider, &ProviderQuirk::name);
  return found == kQuirks.end() ? kNeutral : *found;
}

bool inserts_early(std::string_view provider, std::string_view fabric) {
  const ProviderQuirk& quirk = quirk_of(provider);
  return quirk.connects_at_insert ||
         (!quirk.known_senders_fabric.empty() && fabric == quirk.known_senders_fabric);
}

std::string best_provider(std::span<const std::string> offered) {
  std::string best;
  for (const std::string& name : offered) {
    const std::int32_t rank = quirk_of(name).rank;
    if (rank >= 0 && (best.empty() || rank > quirk_of(best).rank)) {
      best = name;
    }
  }
  return best;
}

}  // namespace weft::fabric
