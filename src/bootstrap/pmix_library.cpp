#ifdef WEFT_HAVE_PMIX
#include "src/bootstrap/pmix_library.hpp"

#include <array>
#include <mutex>

#include "src/base/error.hpp"
#include "src/base/library_search.hpp"
#include "src/bootstrap/pmix_bootstrap.hpp"

namespace weft::bootstrap {
namespace {

// EFA's installer, Slurm's usual builds, Debian.
constexpr std::array<std::string_view, 4> kFolders{"/opt/amazon/pmix/lib", "/opt/pmix/*/lib",
                                                   "/opt/pmix/lib", "/usr/lib/*/pmix2/lib"};

// What is opened is not closed.
struct State {
  std::mutex mutex;
  LibrarySearch search;
  std::string named;  // by WEFT_LIBPMIX, at the time of the search
  PmixLibrary functions;
};

State& state() {
  static State* one = new State;
  return *one;
}

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

}  // namespace

LibrarySearch open_pmix(const Config& config) {
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  if (!mine.search.has_found()) {
    mine.search = search_library(
        {.soname = "libpmix.so.2", .folders = kFolders, .named = config.libpmix},
        [&mine](const OpenLibrary& library) { return accept(library, mine.functions); });
    mine.named = config.libpmix;
  } else if (!config.libpmix.empty() && config.libpmix != mine.named) {
    fail(Status::InvalidArgument, "WEFT_LIBPMIX={}: this process has opened {} already",
         config.libpmix, mine.search.file);
  }
  return mine.search;
}

const PmixLibrary& pmix_library() {
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  WEFT_CHECK(mine.search.has_found(), "libpmix is used before it is opened");
  return mine.functions;  // which do not change any more
}

std::string pmix_version() {
  return pmix_library().version();
}

}  // namespace weft::bootstrap
#endif
