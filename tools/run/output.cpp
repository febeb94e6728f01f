#include "tools/run/output.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

namespace weft::run {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{1} << 20U;
// A pipe that poll(2) calls writable takes as much as this at once (PIPE_BUF, pipe(7)); more could
// block.
constexpr std::size_t kWriteBytes = 4096;
constexpr std::size_t kPendingBytesMax = std::size_t{1} << 20U;

bool is_writable(int fd) {
  pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

void LinePrefixer::append(std::uint32_t pe, std::uint32_t stream, std::string_view text) {
  std::string& partial = partial_[{pe, stream}];
  partial += text;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = partial.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    put_line(pe, stream, std::string_view(partial).substr(begin, end - begin));
  }
  partial.erase(0, begin);
  if (partial.size() > kLineBytesMax) {
    put_line(pe, stream, partial);
    partial.clear();
  }
}

void LinePrefixer::flush() {
  for (auto& [key, partial] : partial_) {
    if (!partial.empty()) {
      put_line(key.first, key.second, partial);
    }
  }
  partial_.clear();
}

void LinePrefixer::put_line(std::uint32_t pe, std::uint32_t stream, std::string_view line) {
  sink_(stream, fmt::format("[{}] {}\n", pe, line));
}

void OutputStream::append(std::string_view text) {
  if (error_ == 0) {
    pending_ += text;
  }
}

// The descriptor stays as it is, since O_NONBLOCK would hold for everybody who shares it, such as
// the shell.
void OutputStream::write() {
  while (pending() > 0 && is_writable(fd_)) {
    const ssize_t count =
        ::write(fd_, pending_.data() + written_, std::min(pending(), kWriteBytes));
    if (count >= 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      written_ = pending_.size();
    }
  }
  if (pending() == 0) {
    pending_.clear();
    written_ = 0;
  } else if (written_ > kPendingBytesMax) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

JobOutput::JobOutput(bool prefixes)
    : out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      prefixes_(prefixes),
      prefixer_([this](std::uint32_t stream, std::string_view text) {
        stream_of(stream).append(text);
      }) {}

void JobOutput::append(std::uint32_t pe, std::uint32_t stream, std::string_view bytes) {
  if (prefixes_) {
    prefixer_.append(pe, stream, bytes);
  } else {
    stream_of(stream).append(bytes);
  }
  stream_of(stream).write();
}

void JobOutput::say(std::string_view text) {
  err_.append(fmt::format("weft-run: {}\n", text));
  err_.write();
}

void JobOutput::write() {
  out_.write();
  err_.write();
}

std::array<pollfd, 2> JobOutput::interest() const {
  const auto entry_of = [](const OutputStream& stream) {
    return pollfd{.fd = stream.pending() > 0 ? stream.fd() : -1, .events = POLLOUT, .revents = 0};
  };
  return {entry_of(out_), entry_of(err_)};
}

bool JobOutput::is_full() const {
  return std::max(out_.pending(), err_.pending()) > kPendingBytesMax;
}

void JobOutput::finish(Clock::time_point deadline) {
  prefixer_.flush();
  write();
  while (out_.pending() + err_.pending() > 0 && Clock::now() < deadline) {
    std::array<pollfd, 2> entries = interest();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    static_cast<void>(::poll(entries.data(), entries.size(),
                             static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000))));
    write();
  }
}

void say_now(std::string_view text) noexcept {
  const std::string line = fmt::format("weft-run: {}\n", text);
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace weft::run
