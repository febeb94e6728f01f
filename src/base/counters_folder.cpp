#include "src/base/counters_folder.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/counters.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/base/process.hpp"

namespace weft {
namespace {

constexpr std::string_view kEnding = ".page";
constexpr std::size_t kJobCharactersMax = 64;

bool may_stand_in_name(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '.' || character == '_' ||
         character == '-';
}

// 0 if this version cannot read the page.
std::uint64_t start_ticks_in(int page) {
  PageHeader header;
  const bool is_whole = ::pread(page, &header, sizeof(header), 0) == sizeof(header);
  return is_whole && header.magic == PageHeader::kMagic && header.version == PageHeader::kVersion
             ? header.process_start_ticks
             : 0;
}

// Nonblocking: a file with the name of a page may be a pipe.
bool is_dead_page(int folder, const std::string& name, std::int64_t pid) {
  const FileDescriptor page(
      ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};

  if (!page.is_open() || ::fstat(page.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || ::flock(page.get(), LOCK_EX | LOCK_NB) != 0) {
    return false;
  }
  if (!is_process_alive(pid)) {
    return true;
  }
  const std::uint64_t then = start_ticks_in(page.get());
  const std::uint64_t now = process_start_ticks(pid);
  return then != 0 && now != 0 && then != now;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  // Opened again, because the read position of a directory descriptor is shared with its
  // duplicates.
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(own < 0 ? nullptr : ::fdopendir(own),
                                                    &::closedir);
  while (entries != nullptr) {
    const dirent* entry = ::readdir(entries.get());  // NOLINT(concurrency-mt-unsafe): our own DIR
    if (entry == nullptr) {
      break;
    }
    names.emplace_back(static_cast<const char*>(entry->d_name));
  }
  return names;
}

}  // namespace

std::string page_file_name(const PageName& name) {
  std::string job = name.job.substr(0, kJobCharactersMax);
  std::ranges::replace_if(job, [](char character) { return !may_stand_in_name(character); }, '_');
  return fmt::format("weft-{}-{}-{}-{}{}", name.uid, job, name.pe.value, name.pid, kEnding);
}

std::string unfinished_file_name(const std::string& file_name) {
  return "." + file_name;
}

std::optional<std::int64_t> pid_of_page(std::string_view file_name, std::uint32_t uid) {
  if (file_name.starts_with('.')) {
    file_name.remove_prefix(1);
  }
  const std::size_t dash = file_name.rfind('-');
  if (!file_name.starts_with(fmt::format("weft-{}-", uid)) || !file_name.ends_with(kEnding) ||
      dash + 1 >= file_name.size() - kEnding.size()) {
    return std::nullopt;
  }
  const std::string_view digits =
      file_name.substr(dash + 1, file_name.size() - kEnding.size() - dash - 1);
  std::int32_t pid = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const bool is_number = code == std::errc{} && end == digits.data() + digits.size() && pid > 0;
  return is_number ? std::optional<std::int64_t>(pid) : std::nullopt;
}

std::vector<std::string> dead_pages(int folder) {
  std::vector<std::string> dead;
  for (std::string& name : names_in(folder)) {
    const auto pid = pid_of_page(name, ::geteuid());
    if (pid && is_dead_page(folder, name, *pid)) {
      dead.push_back(std::move(name));
    }
  }
  return dead;
}

std::size_t remove_dead_pages(int folder) {
  std::size_t removed = 0;
  for (const std::string& name : dead_pages(folder)) {
    removed += ::unlinkat(folder, name.c_str(), 0) == 0 ? 1 : 0;
  }
  return removed;
}

std::size_t remove_dead_pages(const std::string& folder) {
  const FileDescriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return open.is_open() ? remove_dead_pages(open.get()) : 0;
}

}  // namespace weft
