// Entry of the provider: libfabric loads libloom-fi.so from FI_PROVIDER_PATH and calls
// fi_prov_ini().
//
// Threads: libfabric calls from one at a time.
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "loom/src/domain.hpp"
#include "loom/src/fabric_link.hpp"
#include "loom/src/info.hpp"

namespace loom {
namespace {

// Newer than any real provider of the same name: of two the higher one is taken (libfabric,
// src/fabric.c).
constexpr std::uint32_t kVersion = FI_VERSION(9999, 0);

int answer(std::uint32_t version,
           const char* /*node*/,
           const char* /*service*/,
           std::uint64_t /*flags*/,
           const fi_info* hints,
           fi_info** result) {
  const FabricLink* link = fabric_link();
  return link == nullptr ? -FI_ENODATA : get_info(*link, version, hints, result);
}

void require_libfabric(std::uint32_t version) {
  if (FI_VERSION_LT(version, FI_VERSION(1, 17))) {
    throw Error(fmt::format("libfabric {}.{} is too old; Loom needs 1.17 or newer",
                            FI_MAJOR(version), FI_MINOR(version)));
  }
}

fi_provider provider{.version = kVersion,
                     .fi_version = 0,
                     .context = {},
                     .name = nullptr,
                     .getinfo = answer,
                     .fabric = open_fabric,
                     .cleanup = [] {}};

}  // namespace
}  // namespace loom

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) {
  try {
    loom::require_libfabric(fi_version());
    loom::provider.name = loom::chosen_persona().provider.data();  // a literal
  } catch (const loom::Error& error) {
    fmt::print(stderr, "loom: {}\n", error.what());
    return nullptr;
  }
  loom::provider.fi_version = fi_version();
  return &loom::provider;
}
