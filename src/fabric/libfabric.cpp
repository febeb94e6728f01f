#include "src/fabric/libfabric.hpp"

#include <array>
#include <mutex>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/fabric/discovery.hpp"

namespace weft::fabric {
namespace {

// Where the installers of EFA and of Slingshot's software put it. Not always on the loader's path.
constexpr std::array<std::string_view, 3> kFolders{"/opt/amazon/efa/lib", "/opt/amazon/efa/lib64",
                                                   "/opt/cray/libfabric/*/lib64"};

// The versions of the symbols that the headers of this build declare; see cmake/libfabric.cmake. Structures are of
// that version's layout, and a newer library converts them.
constexpr const char* kInfoVersion = WEFT_LIBFABRIC_INFO_VERSION;
constexpr const char* kFabricVersion = "FABRIC_1.1";
constexpr const char* kBaseVersion = "FABRIC_1.0";

constexpr std::uint32_t kOldest = FI_VERSION(1, 17);

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}", FI_MAJOR(version), FI_MINOR(version));
}

// What is opened is not closed.
struct State {
  std::mutex mutex;
  LibrarySearch search;
  std::string named;  // by WEFT_LIBFABRIC, at the time of the search
  Libfabric functions;
};

State& state() {
  static State* one = new State;  // outlives every rail, also those of static objects
  return *one;
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

}  // namespace

LibrarySearch open_libfabric(const Config& config) {
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  if (mine.search.has_found()) {
    if (!config.libfabric.empty() && config.libfabric != mine.named) {
      fail(Status::InvalidArgument, "WEFT_LIBFABRIC={}: this process has opened {} already",
           config.libfabric, mine.search.file);
    }
    return mine.search;
  }
  mine.named = config.libfabric;
  mine.search = search_library(
      {.soname = "libfabric.so.1", .folders = kFolders, .named = config.libfabric},
      [&mine](const OpenLibrary& library) { return accept(library, mine.functions); });
  if (mine.search.has_found()) {
    log::info("libfabric {} is {}", version_text(mine.functions.version()), mine.search.file);
  }
  return mine.search;
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
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  WEFT_CHECK(mine.search.has_found(), "libfabric is used before it is opened");
  return mine.functions;  // which do not change any more
}

// Rails that are simulated have errors, too, and need no library. Below FI_ERRNO_OFFSET a code is errno's.
std::string error_words(int error) {
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  if (mine.search.has_found()) {
    return mine.functions.strerror(error);
  }
  return error < FI_ERRNO_OFFSET ? errno_words(error) : fmt::format("error {} of libfabric", error);
}

std::string library_version() {
  return version_text(libfabric().version());
}

}  // namespace weft::fabric
