#include "src/bootstrap/pmi_store.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/bootstrap/protocol.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::chrono::milliseconds kFarewellLimit{500};
// Longer than any answer: values have at most 1024 bytes with the launchers known.
constexpr std::size_t kLineBytesMax = 64 << 10U;

void require_socket(int socket) {
  struct stat status{};
  if (::fstat(socket, &status) != 0 || !S_ISSOCK(status.st_mode)) {
    fail(Status::InvalidArgument,
         "PMI_FD={} is not the launcher's socket: a program between the launcher and this one has "
         "closed it (in Python, subprocess needs close_fds=False)",
         socket);
  }
}

}  // namespace

std::string pmi_field(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, blank);
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
      return std::string(word.substr(name.size() + 1));
    }
    line.remove_prefix(std::min(blank + 1, line.size()));
  }
  return {};
}

PmiStore::PmiStore(int socket, std::chrono::milliseconds timeout)
    : socket_(socket), timeout_(timeout) {
  require_socket(socket);
  // Processes that this one starts must not speak for it.
  static_cast<void>(::fcntl(socket, F_SETFD, FD_CLOEXEC));
  request("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  const std::string bytes_max = pmi_field(request("cmd=get_maxes", "maxes"), "vallen_max");
  std::from_chars(bytes_max.data(), bytes_max.data() + bytes_max.size(), value_bytes_max_);
  store_name_ = pmi_field(request("cmd=get_my_kvsname", "my_kvsname"), "kvsname");
}

PmiStore::~PmiStore() {
  finish(0);
}

void PmiStore::finish(int status) {
  if (std::exchange(is_finished_, true)) {
    return;
  }
  try {
    timeout_ = kFarewellLimit;
    if (status == 0) {
      request("cmd=finalize", "finalize_ack");
    } else {
      send_line(fmt::format("cmd=abort exitcode={}", status));  // has no answer
    }
  } catch (const Error&) {
    return;  // the launcher has gone first
  }
}

void PmiStore::put(std::string_view key, std::string_view value) {
  request(fmt::format("cmd=put kvsname={} key={} value={}", store_name_, key, value), "put_result");
}

void PmiStore::barrier() {
  request("cmd=barrier_in", "barrier_out");
}

std::string PmiStore::get(std::string_view key) {
  const auto answer =
      request(fmt::format("cmd=get kvsname={} key={}", store_name_, key), "get_result");
  return pmi_field(answer, "value");
}

void PmiStore::send_line(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  // A line fits into the socket's buffer, as each waits for the answer to the one before.
  if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    fail(Status::PeerLost, "the launcher does not take '{}' on PMI_FD: {}; has the job ended?",
         line, errno_words(errno));
  }
}

std::string PmiStore::request(std::string_view line, std::string_view awaited) {
  send_line(line);
  std::string answer = read_line(awaited);
  const std::string code = pmi_field(answer, "rc");
  if (pmi_field(answer, "cmd") != awaited || !(code.empty() || code == "0")) {
    fail(Status::InvalidArgument,
         "the launcher answers '{}' to '{}' on PMI_FD; {} of PMI-1 was due", answer, line, awaited);
  }
  return answer;
}

std::string PmiStore::read_line(std::string_view awaited) {
  const auto deadline = Clock::now() + timeout_;
  std::size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    if (unread_.size() > kLineBytesMax || !wait_ready(socket_, POLLIN, deadline)) {
      fail(Status::Timeout, "{} did not come from the launcher within {} (PMI_FD)", awaited,
           format_seconds(timeout_.count()));
    }
    std::array<char, 2048> bytes{};
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      unread_.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      fail(Status::PeerLost, "the launcher has closed PMI_FD; has the job ended?");
    }
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

}  // namespace weft::bootstrap
