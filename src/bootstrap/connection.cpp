#include "src/bootstrap/connection.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr int kReadsPerCall = 16;

void make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    fail("fcntl of a connection failed: {}", errno_words(errno));
  }
}

// A closed peer must yield an error code, not SIGPIPE: this runs inside the user's program.
ssize_t write_some(int fd, std::span<const std::byte> bytes) {
  const ssize_t written = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  // Pipes exist only between weft-run and its agents, which ignore SIGPIPE.
  return written < 0 && errno == ENOTSOCK ? ::write(fd, bytes.data(), bytes.size()) : written;
}

}  // namespace

SharedFrame share_frame(std::uint16_t type, std::span<const std::byte> payload) {
  return std::make_shared<const Blob>(encode_frame(type, payload));
}

Connection::Connection(FileDescriptor input, FileDescriptor output, std::size_t payload_bytes_max)
    : input_(std::move(input)), output_(std::move(output)), reader_(payload_bytes_max) {
  make_nonblocking(input_.get());
  if (output_.is_open()) {
    make_nonblocking(output_.get());
  }
}

bool Connection::receive() {
  std::array<std::byte, kReadBytes> bytes;  // not zeroed: read fills the used part
  for (int i = 0; i < kReadsPerCall; ++i) {
    const ssize_t count = ::read(input_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      reader_.append(std::span(bytes).first(static_cast<std::size_t>(count)));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
  return true;
}

void Connection::send(SharedFrame frame) {
  unsent_.push_back(std::move(frame));
  flush();
}

void Connection::flush() {
  while (!unsent_.empty()) {
    const std::span rest = std::span(*unsent_.front()).subspan(sent_bytes_);
    const ssize_t written = write_some(output(), rest);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0 && errno == EAGAIN) {
      return;
    }
    if (written < 0) {
      unsent_.clear();  // broken; receive() will report it
      sent_bytes_ = 0;
      return;
    }
    sent_bytes_ += static_cast<std::size_t>(written);
    if (sent_bytes_ == unsent_.front()->size()) {
      unsent_.pop_front();
      sent_bytes_ = 0;
    }
  }
}

}  // namespace weft::bootstrap
