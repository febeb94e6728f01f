#include "src/base/open_files.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/error.hpp"

namespace weft {
namespace {

rlimit limit_now() noexcept {
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  static_cast<void>(::getrlimit(RLIMIT_NOFILE, &limit));
  return limit;
}

}  // namespace

rlimit raise_open_files() noexcept {
  const rlimit before = limit_now();
  rlimit wanted = before;
  wanted.rlim_cur = std::min<rlim_t>(before.rlim_max, kOpenFilesMax);
  if (wanted.rlim_cur > before.rlim_cur) {
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &wanted));  // fails only above the hard limit
  }
  return before;
}

std::uint64_t count_open_files() {
  std::error_code code;
  const std::filesystem::directory_iterator entries("/proc/self/fd", code);
  if (code) {
    return 0;
  }
  // The iterator itself has one open.
  const auto count = std::distance(begin(entries), end(entries));
  return static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(count - 1, 0));
}

bool has_room_for_open_files(std::uint64_t more) {
  return count_open_files() + more <= limit_now().rlim_cur;
}

std::string open_files_hint(std::uint64_t more) {
  const rlimit limit = limit_now();
  return fmt::format(
      "{} open files are needed, and the limit is {}: raise the hard limit (ulimit -Hn, "
      "LimitNOFILE of a service, --ulimit nofile of a container)",
      count_open_files() + more, limit.rlim_cur);
}

void open_standard_streams() noexcept {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      // The lowest free number is this one.
      static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY));
    }
  }
}

}  // namespace weft
