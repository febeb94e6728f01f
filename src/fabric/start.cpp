#include "src/fabric/start.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <string>
#include <system_error>

#include <dlfcn.h>
#include <sys/utsname.h>

#include "src/base/log.hpp"
#include "src/base/signal_handlers.hpp"
#include "src/fabric/handles.hpp"
#include "src/fabric/libfabric.hpp"

namespace weft::fabric {
namespace {

struct Started {
  StartFacts facts;
  bool leaves_small_writes = false;
};

Started& started() {
  static auto* one = new Started;
  return *one;
}

std::size_t entries_of(const char* folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// From Linux 5.13 on, fork(2) copies pages that a NIC has pinned, for EFA as for Slingshot.
bool kernel_copies_at_fork() {
  utsname system{};
  int major = 0;
  int minor = 0;
  // NOLINTNEXTLINE(cert-err34-c): numbers that do not fit are no kernel's
  if (::uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2) {
    return true;
  }
  return major > 5 || (major == 5 && minor >= 13);
}

// ibv_is_fork_initialized(3) came with rdma-core 35, which asks the kernel; older ones need fork
// support on every kernel. Only before the first registration of the process can it be had:
// ibv_fork_init(3) says so. The provider gets the variable as well, because it then leaves huge
// pages alone (prov/efa/src/efa_fork_support.c of libfabric 2.6).
bool verbs_needs_fork_support() {
  void* const verbs = ::dlopen("libibverbs.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (verbs == nullptr) {
    return !kernel_copies_at_fork();  // within libfabric, perhaps
  }
  constexpr int kUnneeded = 2;  // IBV_FORK_UNNEEDED
  auto* const state = reinterpret_cast<int (*)()>(::dlsym(verbs, "ibv_is_fork_initialized"));
  auto* const ask = reinterpret_cast<int (*)()>(::dlsym(verbs, "ibv_fork_init"));
  bool needs = ask != nullptr && (state == nullptr || state() != kUnneeded);
  if (needs && ask() != 0) {
    needs = false;
    log::warn(
        "fork support of libibverbs comes too late: this process has registered memory before; set "
        "RDMAV_FORK_SAFE=1 in its environment if it forks");
  }
  ::dlclose(verbs);
  return needs;
}

StartFacts find_facts(const StartNeeds& needs) {
  StartFacts facts{.library_version = libfabric().version(),
                   .rdma_devices = entries_of("/sys/class/infiniband"),
                   .cxi_devices = entries_of("/sys/class/cxi"),
                   .pe_count = needs.pe_count,
                   .uses_gpu = needs.uses_gpu,
                   .kernel_copies_at_fork = kernel_copies_at_fork(),
                   .is_set = is_in_environment};
  facts.verbs_needs_fork_support =
      facts.rdma_devices > 0 && !is_fork_decided(is_in_environment) && verbs_needs_fork_support();
  return facts;
}

// Asks for the providers' names only, which loads and starts all of them.
void ask_for_names() {
  const SignalHandlersKept handlers;
  fi_info* found = nullptr;
  static_cast<void>(
      libfabric().getinfo(FI_VERSION(1, 17), nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &found));
  const InfoHandle owner(found);
}

void start(const StartNeeds& needs) {
  Started& one = started();
  one.facts = find_facts(needs);
  const ScopedVariables variables(variables_at_start(one.facts));
  one.leaves_small_writes =
      leaves_small_writes_to_nic(one.facts.library_version, [](std::string_view name) {
        const char* value =
            std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
        return std::string(value == nullptr ? "" : value);
      });
  ask_for_names();
}

}  // namespace

void start_libfabric(const StartNeeds& needs) {
  static std::once_flag once;
  std::call_once(once, start, needs);
}

const StartFacts& start_facts() {
  return started().facts;
}

bool small_writes_are_left_to_nic() {
  return started().leaves_small_writes;
}

}  // namespace weft::fabric
