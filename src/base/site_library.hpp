// One library of the site, opened at its first need and kept: its functions, as a structure of
// pointers.
//
// Control path; any thread. An object is made once and never destroyed, because rails of static
// objects may outlive everything else.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "src/base/error.hpp"
#include "src/base/library_search.hpp"

namespace weft {

template <typename Functions>
class SiteLibrary {
 public:
  struct Kind {
    std::string_view soname;
    std::span<const std::string_view> folders;  // as LibraryQuestion's
    std::string_view setting;                   // which names a file: "WEFT_LIBFABRIC"
    // Fills in the functions, or says why this library does not serve.
    std::string (*accept)(const OpenLibrary& library, Functions& functions);
  };

  explicit SiteLibrary(const Kind& kind) : kind_(kind) {}

  // Searches unless one has been found. `named` is the value of the setting. Throws Error
  // (InvalidArgument) if it names another file than the one that is open.
  [[nodiscard]] LibrarySearch open(const std::string& named) {
    const std::lock_guard lock(mutex_);
    if (!search_.has_found()) {
      search_ = search_library(
          {.soname = std::string(kind_.soname), .folders = kind_.folders, .named = named},
          [this](const OpenLibrary& library) { return kind_.accept(library, functions_); });
      named_ = named;
    } else if (!named.empty() && named != named_) {
      fail(Status::InvalidArgument, "{}={}: this process has opened {} already", kind_.setting,
           named, search_.file);
    }
    return search_;
  }

  // Null until one has been found. They do not change any more.
  [[nodiscard]] const Functions* find() {
    const std::lock_guard lock(mutex_);
    return search_.has_found() ? &functions_ : nullptr;
  }

  [[nodiscard]] const Functions& functions() {
    const Functions* const found = find();
    WEFT_CHECK(found != nullptr, "{} is used before it is opened", kind_.soname);
    return *found;
  }

 private:
  Kind kind_;
  std::mutex mutex_;
  LibrarySearch search_;
  std::string named_;  // at the time of the search
  Functions functions_;
};

}  // namespace weft
