#include "src/fabric/variables.hpp"

#include <rdma/fabric.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "src/fabric/start.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kFirstWithNativeTcp = FI_VERSION(1, 18);
constexpr std::uint32_t kFirstWithRmaSwitch = FI_VERSION(2, 3);
constexpr std::uint32_t kFirstWithoutMessageSwitch = FI_VERSION(2, 0);

// src/common.c: ofi_universe_size.
constexpr std::size_t kUniverseSize = 1024;
// prov/rxm/src/rxm.h of 1.17 to 2.6: a connection posts 128 buffers of 16 KiB, a shared receive
// context 4096.
constexpr std::size_t kSharedPaysFrom = 4096 / 128;
// Of the receives that tcp;ofi_rxm shares among all connections of an endpoint. They come in blocks
// of 1024, all of which are cleared at once (rxm/rxm_ep.c: rxm_ep_create_pools): these and what is
// used beside them fit into one block.
constexpr std::size_t kSharedReceives = 512;

constexpr std::array<std::string_view, 5> kForkVariables{
    "RDMAV_FORK_SAFE", "IBV_FORK_SAFE", "FI_EFA_FORK_SAFE",
    // EFA refuses both together with fork support (prov/efa/src/efa_fork_support.c of 2.6).
    "FI_EFA_USE_HUGE_PAGE", "RDMAV_HUGEPAGES_SAFE"};

}  // namespace

std::vector<Variable> variables_at_start(const StartFacts& facts) {
  std::vector<Variable> variables;
  const auto set = [&](const char* name, std::string value) {
    if (!facts.is_set(name)) {
      variables.push_back({name, std::move(value)});
    }
  };
  if (facts.library_version < kFirstWithNativeTcp && facts.rdma_devices == 0) {
    set("FI_OFI_RXM_BUFFER_SIZE", std::to_string(kMessageBytesMax));
    set("FI_OFI_RXM_MSG_RX_SIZE", std::to_string(kSharedReceives));
  }
  const std::size_t peers = facts.pe_count * (facts.rdma_devices + facts.cxi_devices);
  if (peers > kUniverseSize) {
    set("FI_UNIVERSE_SIZE", std::to_string(peers));
  }
  if (facts.verbs_needs_fork_support && !is_fork_decided(facts.is_set)) {
    set("RDMAV_FORK_SAFE", "1");
  }
  if (facts.uses_gpu && facts.cxi_devices > 0) {
    if (facts.library_version >= kFirstWithRmaSwitch) {
      set(kNoSmallWriteCopies, "1");
    } else if (facts.library_version < kFirstWithoutMessageSwitch) {
      set(kNoSmallMessageCopies, "1");
    }
  }
  return variables;
}

std::vector<Variable> variables_at_opening(std::string_view provider, const StartFacts& facts) {
  std::vector<Variable> variables;
  const bool is_shared =
      provider == "verbs;ofi_rxm" && facts.pe_count * facts.rdma_devices > kSharedPaysFrom;
  if (is_shared && !facts.is_set("FI_OFI_RXM_USE_SRX")) {
    variables.push_back({"FI_OFI_RXM_USE_SRX", "1"});
  }
  if (provider == "cxi" && !facts.kernel_copies_at_fork && !facts.is_set("CXI_FORK_SAFE")) {
    variables.push_back({"CXI_FORK_SAFE", "1"});
    if (!facts.is_set("CXI_FORK_SAFE_HP")) {
      variables.push_back({"CXI_FORK_SAFE_HP", "1"});
    }
  }
  return variables;
}

bool leaves_small_writes_to_nic(std::uint32_t library_version,
                                const std::function<std::string(std::string_view)>& value_of) {
  const char* name = library_version >= kFirstWithRmaSwitch         ? kNoSmallWriteCopies
                     : library_version < kFirstWithoutMessageSwitch ? kNoSmallMessageCopies
                                                                    : nullptr;
  return name != nullptr && value_of(name) == "1";
}

bool is_fork_decided(const std::function<bool(std::string_view)>& is_set) {
  return std::ranges::any_of(kForkVariables, is_set);
}

ScopedVariables::ScopedVariables(std::vector<Variable> variables) : set_(std::move(variables)) {
  std::erase_if(set_, [](const Variable& one) { return is_in_environment(one.name); });
  for (const Variable& one : set_) {
    // concurrency: init is single-threaded with respect to setenv, as POSIX requires.
    ::setenv(one.name.c_str(), one.value.c_str(), 0);  // NOLINT(concurrency-mt-unsafe)
  }
}

ScopedVariables::~ScopedVariables() {
  for (const Variable& one : set_) {
    ::unsetenv(one.name.c_str());  // NOLINT(concurrency-mt-unsafe): as above
  }
}

bool is_in_environment(std::string_view name) {
  return std::getenv(std::string(name).c_str()) != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace weft::fabric
