#ifdef WEFT_HAVE_PMIX
#include "src/bootstrap/pmix_library.hpp"

#include <array>

#include "src/base/site_library.hpp"

namespace weft::bootstrap {
namespace {

// EFA's installer, Slurm's usual builds, Debian.
constexpr std::array<std::string_view, 4> kFolders{"/opt/amazon/pmix/lib", "/opt/pmix/*/lib",
                                                   "/opt/pmix/lib", "/usr/lib/*/pmix2/lib"};

std::string accept(const OpenLibrary& library, PmixLibrary& functions) {
  PmixLibrary found;
  std::string missing;
  const auto take = [&library, &missing](auto& field, const char* name) {
    field = library.find_as<std::remove_reference_t<decltype(field)>>(name);
    if (field == nullptr && missing.empty()) {
      missing = name;
    }
  };
  take(found.version, "PMIx_Get_version");
  take(found.init, "PMIx_Init");
  take(found.finalize, "PMIx_Finalize");
  take(found.abort, "PMIx_Abort");
  take(found.put, "PMIx_Put");
  take(found.commit, "PMIx_Commit");
  take(found.fence_nb, "PMIx_Fence_nb");
  take(found.get, "PMIx_Get");
  take(found.get_nb, "PMIx_Get_nb");
  take(found.error_string, "PMIx_Error_string");
  if (!missing.empty()) {
    return "this is not a libpmix of version 3 or later: it has no " + missing;
  }
  functions = found;
  return "";
}

SiteLibrary<PmixLibrary>& site_library() {
  static auto* one = new SiteLibrary<PmixLibrary>(
      {.soname = "libpmix.so.2", .folders = kFolders, .setting = "WEFT_LIBPMIX", .accept = accept});
  return *one;
}

}  // namespace

LibrarySearch open_pmix_library(const Config& config) {
  return site_library().open(config.libpmix);
}

const PmixLibrary& pmix_library() {
  return site_library().functions();
}

}  // namespace weft::bootstrap
#endif
