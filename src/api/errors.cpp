// Error messages: stored for weft_last_error, translated to OpenSHMEM's names, printed where
// callers check no status.
#include "src/api/errors.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "src/api/forked.hpp"
#include "src/base/log.hpp"

namespace weft::api {
namespace {

struct LastError {
  std::string message;
  Status untaken = Status::Ok;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

constexpr std::string_view kHeapSize = "WEFT_HEAP_SIZE";

// Names of Weft's own interface and their OpenSHMEM equivalents; longer ones before their
// substrings.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"use memory from weft_malloc", "use memory from shmem_malloc, or a global or static variable"},
    {"weft_team_split made", "shmem_team_split_strided made"},
    {"WEFT_TEAM_WORLD", "SHMEM_TEAM_WORLD"},
    {"WEFT_TEAM_NODE", "SHMEM_TEAM_SHARED"},
    {"weft_init ", "shmem_init "},
    {"weft_finalize", "shmem_finalize"},
    {"weft_malloc", "shmem_malloc"},
    {"weft_ctx_create", "shmem_ctx_create"},
    {kHeapSize, "SHMEM_SYMMETRIC_SIZE"},
};

// Which takes precedence over SHMEM_SYMMETRIC_SIZE.
bool sets_heap_size() {
  const char* value = std::getenv("WEFT_HEAP_SIZE");  // NOLINT(concurrency-mt-unsafe): read only
  return value != nullptr && *value != '\0';
}

// Translates the message to OpenSHMEM's names.
void translate_error() {
  std::string& message = last_error().message;
  for (const auto& [ours, theirs] : kWords) {
    if (ours == kHeapSize && sets_heap_size()) {
      continue;
    }
    if (const std::size_t at = message.find(ours); at != std::string::npos) {
      message.replace(at, ours.size(), theirs);
    }
  }
}

// True for the first error at each call site. The number of remembered sites is bounded: later
// sites return false.
bool is_first_error_at(const void* site) {
  constexpr std::size_t kRemembered = 1024;
  static std::mutex mutex;
  static std::set<const void*> seen;
  const std::unique_lock lock(mutex);
  return seen.size() < kRemembered && seen.insert(site).second;
}

}  // namespace

void rename_error(const char* name) {
  std::string& message = last_error().message;
  const std::size_t end = message.find(": ");
  if (message.starts_with("weft_") && end != std::string::npos) {
    message.erase(0, end + 2);
  }
  if (!message.starts_with(name)) {
    message.insert(0, fmt::format("{}: ", name));
  }
}

void say_error(const char* name, const void* site) {
  rename_error(name);
  translate_error();
  if (is_first_error_at(site)) {
    log::error("{}; the call returned this error, which is printed only once",
               last_error().message);
  }
}

void end_job(const char* name) {
  rename_error(name);
  translate_error();
  log::error("{}", last_error().message);
  static_cast<void>(std::fflush(nullptr));
  std::_Exit(EXIT_FAILURE);
}

int report(Status status, std::string message) {
  last_error() = {std::move(message), status};
  return static_cast<int>(status);
}

int report_not_initialized(const char* name) {
  if (const int parent = pe_forked_from; parent >= 0) {
    return report(Status::NotInitialized,
                  fmt::format("{}: this process was forked from PE {} and is not a PE; call Weft "
                              "in the PE, or start a program of its own (exec)",
                              name, parent));
  }
  return report(Status::NotInitialized,
                fmt::format("{}: Weft is not initialized; call weft_init first, and nothing after "
                            "weft_finalize",
                            name));
}

const std::string& last_error_text() {
  return last_error().message;
}

Status take_last_error() {
  return std::exchange(last_error().untaken, Status::Ok);
}

}  // namespace weft::api

const char* weft_last_error(void) {
  return weft::api::last_error_text().c_str();
}

int weft_take_error(void) {
  return static_cast<int>(weft::api::take_last_error());
}
