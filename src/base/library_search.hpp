// Libraries that are opened at run time (dlopen(3)), because each site keeps its own: the search
// for one, and what was refused on the way.
//
// Control path; any thread. What has been opened stays open for the life of the process.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// A shared library. Whoever opened it keeps it open.
class OpenLibrary {
 public:
  explicit OpenLibrary(void* handle) : handle_(handle) {}

  // The address of a function; null if the library lacks it. With `version`, of that version of the
  // symbol alone (dlvsym(3)): the newest may expect structures of another layout.
  [[nodiscard]] void* find(const char* name, const char* version = nullptr) const;

  template <typename Function>
  [[nodiscard]] Function find_as(const char* name, const char* version = nullptr) const {
    return reinterpret_cast<Function>(find(name, version));
  }

  // The file, as the loader found it.
  [[nodiscard]] std::string file() const;

 private:
  void* handle_;
};

struct RefusedLibrary {
  std::string file;
  std::string reason;
};

struct LibraryQuestion {
  std::string soname;  // "libfabric.so.1": what the loader looks for first
  std::span<const std::string_view>
      folders;        // then these: glob(7) patterns, the highest version first
  std::string named;  // by a setting; if not empty, only this file is tried
};

// What a search came to.
struct LibrarySearch {
  std::string file;                     // the one that serves; empty if none does
  std::vector<RefusedLibrary> refused;  // those before it, in the order in which they were tried

  [[nodiscard]] bool has_found() const { return !file.empty(); }
};

// Opens candidates until `accept` returns an empty text; otherwise the text is the reason, and the
// candidate is closed.
[[nodiscard]] LibrarySearch search_library(
    const LibraryQuestion& question, const std::function<std::string(const OpenLibrary&)>& accept);

// "libfabric.so.1: cannot open shared object file; /opt/amazon/efa/lib/libfabric.so.1: ..."
[[nodiscard]] std::string refused_text(const LibrarySearch& search);

}  // namespace weft
