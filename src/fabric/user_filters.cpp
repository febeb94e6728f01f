#include "src/fabric/user_filters.hpp"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace weft::fabric {
namespace {

// fi_fabric(7), fi_tcp(7), fi_verbs(7), fi_efa(7).
constexpr std::array<const char*, 4> kFilters{"FI_PROVIDER", "FI_TCP_IFACE", "FI_VERBS_IFACE",
                                              "FI_EFA_IFACE"};

}  // namespace

std::string user_filter_hint() {
  std::string set;
  for (const char* name : kFilters) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread writes the environment while a job starts
    if (const char* value = std::getenv(name); value != nullptr) {
      set += fmt::format("{}{}={}", set.empty() ? "" : " and ", name, value);
    }
  }
  return set.empty()
             ? ""
             : fmt::format("; {} of the environment limits what libfabric offers: unset it", set);
}

}  // namespace weft::fabric
