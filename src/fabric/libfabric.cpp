#include "src/fabric/libfabric.hpp"

#include <array>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/site_library.hpp"
#include "src/fabric/discovery.hpp"

namespace weft::fabric {
namespace {

// Where the installers of EFA and of Slingshot's software put it. Not always on the loader's path.
constexpr std::array<std::string_view, 3> kFolders{"/opt/amazon/efa/lib", "/opt/amazon/efa/lib64",
                                                   "/opt/cray/libfabric/*/lib64"};

// The versions of the symbols that the headers of this build declare; see cmake/libfabric.cmake.
// Structures are of that version's layout, and a newer library converts them.
constexpr const char* kInfoVersion = WEFT_LIBFABRIC_INFO_VERSION;
constexpr const char* kFabricVersion = "FABRIC_1.1";
constexpr const char* kBaseVersion = "FABRIC_1.0";

constexpr std::uint32_t kOldest = FI_VERSION(1, 17);

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}", FI_MAJOR(version), FI_MINOR(version));
}

template <typename Function>
void take(const OpenLibrary& library, Function& field, const char* name, const char* version) {
  field = library.find_as<Function>(name, version);
}

std::string accept(const OpenLibrary& library, Libfabric& functions) {
  Libfabric found;
  take(library, found.version, "fi_version", kBaseVersion);
  if (found.version == nullptr) {
    return "this is not libfabric: it has no fi_version";
  }
  take(library, found.strerror, "fi_strerror", kBaseVersion);
  take(library, found.fabric, "fi_fabric", kFabricVersion);
  take(library, found.getinfo, "fi_getinfo", kInfoVersion);
  take(library, found.freeinfo, "fi_freeinfo", kInfoVersion);
  take(library, found.dupinfo, "fi_dupinfo", kInfoVersion);
  const std::uint32_t version = found.version();
  if (version < kOldest) {
    return fmt::format("libfabric {} is older than {}, the oldest that Weft supports",
                       version_text(version), version_text(kOldest));
  }
  const bool has_all = found.strerror != nullptr && found.fabric != nullptr &&
                       found.getinfo != nullptr && found.freeinfo != nullptr &&
                       found.dupinfo != nullptr;
  if (!has_all) {
    return fmt::format(
        "libfabric {} has no fi_getinfo of version {}, which this Weft was built with; build Weft "
        "with older headers, or take a newer library",
        version_text(version), kInfoVersion);
  }
  functions = found;
  return "";
}

SiteLibrary<Libfabric>& site_library() {
  static auto* one = new SiteLibrary<Libfabric>({.soname = "libfabric.so.1",
                                                 .folders = kFolders,
                                                 .setting = "WEFT_LIBFABRIC",
                                                 .accept = accept});
  return *one;
}

}  // namespace

LibrarySearch open_libfabric(const Config& config) {
  const bool is_open = site_library().find() != nullptr;
  LibrarySearch search = site_library().open(config.libfabric);
  if (search.has_found() && !is_open) {
    log::info("libfabric {} is {}", library_version(), search.file);
  }
  return search;
}

void require_libfabric(const Config& config) {
  const LibrarySearch search = open_libfabric(config);
  if (search.has_found()) {
    return;
  }
  if (!config.libfabric.empty()) {
    fail(Status::InvalidArgument, "WEFT_LIBFABRIC={}: {}", config.libfabric,
         search.refused.front().reason);
  }
  fail(
      "PEs on other nodes are reached by libfabric, and none could be opened ({}); install it, or "
      "name its file in WEFT_LIBFABRIC",
      refused_text(search));
}

const Libfabric& libfabric() {
  return site_library().functions();
}

// Rails that are simulated have errors, too, and need no library. Below FI_ERRNO_OFFSET a code is
// errno's.
std::string error_words(int error) {
  if (const Libfabric* const library = site_library().find(); library != nullptr) {
    return library->strerror(error);
  }
  return error < FI_ERRNO_OFFSET ? errno_words(error) : fmt::format("error {} of libfabric", error);
}

std::string Rail::words_of(const Event& event) const {
  return error_words(event.error);
}

std::string library_version() {
  return version_text(libfabric().version());
}

}  // namespace weft::fabric
