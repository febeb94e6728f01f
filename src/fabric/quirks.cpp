#include "src/fabric/quirks.hpp"

#include <algorithm>
#include <array>

namespace weft::fabric {
namespace {

using enum DeviceCopies;

constexpr std::array kQuirks{
    ProviderQuirk{
        "efa", 100, false, false, Nic,
        "reliable but unordered; inline sends up to 32 bytes, often no inline writes; bounded "
        "queues, so "
        "Full is common; RDMA write with 32 bits of immediate data. GPU memory: takes a "
        "dma-buf; FI_OPT_FI_HMEM_P2P required forbids its copies by CUDA; no inject of it",
        "fi_efa(7): SRD, inject size, FI_PROGRESS_MANUAL, FI_HMEM; fi_endpoint(3): "
        "FI_OPT_FI_HMEM_P2P. FI_HMEM tried on emulated NICs only"},
    ProviderQuirk{
        "cxi", 100, false, false, Nic,
        "the job's VNI and service must match (SLINGSHOT_VNIS, FI_CXI_DEFAULT_VNI); "
        "provider keys, regions bound to the endpoint; claims immediate data and refuses it "
        "(-FI_EBADFLAGS, libfabric 1.22 to 2.6); GPU memory by dma-buf or the "
        "driver's own registration, messages up to 4 GiB - 1",
        "fi_cxi(7): authorization keys, FI_MR_PROV_KEY, FI_MR_ENDPOINT, HMEM. Tried on emulated "
        "NICs only"},
    ProviderQuirk{
        "verbs;ofi_rxm", 90, false, false, Nic,
        "connections are opened on first use; local registration needed; RMA of GPU memory "
        "goes to the NIC (dma-buf, or the module nvidia_peermem), only messages are copied",
        "fi_verbs(7): FI_MR_LOCAL; fi_rxm(7): connection management. FI_HMEM never tried"},
    ProviderQuirk{"psm3", 80, false, false, Unknown,
                  "own multi-rail (PSM3_MULTIRAIL) must stay off", "fi_psm3(7): PSM3_MULTIRAIL"},
    ProviderQuirk{
        "tcp", 50, true, true, Host,
        "native RDM endpoints from libfabric 1.18 on; asking for FI_ATOMIC silently gives "
        "tcp;ofi_rxm; connects on first use (ms)",
        "fi_tcp(7); measured with 2.5 and 2.6"},
    ProviderQuirk{"net", 35, true, true, Host,
                  "the native RDM tcp provider as 1.17 ships it: connects in 1 ms, but its wait "
                  "descriptor stays readable, so that waiting burns a core",
                  "measured with 1.17: docs/decisions/0003"},
    ProviderQuirk{"tcp;ofi_rxm", 40, true, true, Host,
                  "one write after a lost connection fails with ENOTCONN before it reconnects",
                  "fi_rxm(7); measured with 1.17: docs/decisions/0003"},
    ProviderQuirk{"sockets", -1, true, true, Host,
                  "deprecated; does not leave by the NIC whose address the endpoint has",
                  "fi_sockets(7); measured with 1.17"},
    ProviderQuirk{"shm", -1, false, false, Host, "one node only; Weft maps memory instead",
                  "fi_shm(7)"},
    ProviderQuirk{"udp;ofi_rxd", -1, false, false, Host, "for tests: slow, software reliability",
                  "fi_rxd(7)"},
    ProviderQuirk{"udp", -1, false, false, Host, "datagrams only", "fi_udp(7)"},
    ProviderQuirk{"psm", -1, false, false, Unknown, "deprecated", "libfabric 1.17 release notes"},
    ProviderQuirk{"psm2", -1, false, false, Unknown, "one endpoint a process on Omni-Path",
                  "fi_psm2(7)"},
    ProviderQuirk{"ofi_mrail", -1, false, false, Unknown, "stripes below us; Weft does that itself",
                  "fi_mrail(7)"},
};

constexpr ProviderQuirk kNeutral{
    "", 0, false, false, Unknown, "not in the table; capabilities decide", ""};

}  // namespace

std::span<const ProviderQuirk> provider_quirks() {
  return kQuirks;
}

const ProviderQuirk& quirk_of(std::string_view provider) {
  const auto* const found = std::ranges::find(kQuirks, provider, &ProviderQuirk::name);
  return found == kQuirks.end() ? kNeutral : *found;
}

}  // namespace weft::fabric
