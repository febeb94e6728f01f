#include "src/base/library_search.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>
#include <link.h>

#include "src/base/signal_handlers.hpp"

namespace weft {
namespace {

// The names of folders have versions: the highest first.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  std::ranges::sort(files, [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) > 0;
  });
  return files;
}

std::vector<std::string> candidates_of(const LibraryQuestion& question) {
  if (!question.named.empty()) {
    return {question.named};
  }
  std::vector<std::string> candidates{question.soname};
  for (const std::string_view folder : question.folders) {
    for (std::string& file : matches(fmt::format("{}/{}", folder, question.soname))) {
      candidates.push_back(std::move(file));
    }
  }
  return candidates;
}

// The loader's words begin with the file's name, which the reader of a refusal has already.
std::string loader_words(const std::string& candidate) {
  const char* words = ::dlerror();
  std::string text(words == nullptr ? "the loader does not say why" : words);
  const std::string prefix = candidate + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string try_candidate(const std::string& candidate,
                          const std::function<std::string(const OpenLibrary&)>& accept,
                          LibrarySearch& search) {
  const SignalHandlersKept handlers;
  void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return loader_words(candidate);
  }
  const OpenLibrary library(handle);
  std::string file = library.file();
  std::string reason = accept(library);
  if (reason.empty()) {
    search.file = std::move(file);
  } else {
    reason = fmt::format("{}{}", file == candidate ? "" : file + ": ", reason);
    ::dlclose(handle);
  }
  return reason;
}

}  // namespace

void* OpenLibrary::find(const char* name, const char* version) const {
  return version == nullptr ? ::dlsym(handle_, name) : ::dlvsym(handle_, name, version);
}

std::string OpenLibrary::file() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) {
    return "?";
  }
  return map->l_name;
}

LibrarySearch search_library(const LibraryQuestion& question,
                             const std::function<std::string(const OpenLibrary&)>& accept) {
  LibrarySearch search;
  for (const std::string& candidate : candidates_of(question)) {
    std::string reason = try_candidate(candidate, accept, search);
    if (search.has_found()) {
      return search;
    }
    search.refused.push_back({candidate, std::move(reason)});
  }
  return search;
}

std::string refused_text(const LibrarySearch& search) {
  std::string text;
  for (const RefusedLibrary& refused : search.refused) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", refused.file, refused.reason);
  }
  return text;
}

}  // namespace weft
