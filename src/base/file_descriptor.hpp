// Owns one file descriptor and closes it: sockets, pipes, epoll, timers.
//
// Any thread, one at a time.
// Invariant: get() is -1 or a descriptor that nobody else closes.
#pragma once

#include <utility>

#include <unistd.h>

namespace weft {

class FileDescriptor {
 public:
  FileDescriptor() = default;

  explicit FileDescriptor(int fd) : fd_(fd) {}

  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }

  ~FileDescriptor() { reset(); }

  // -1 if it owns none.
  [[nodiscard]] int get() const { return fd_; }

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

  // The caller owns the descriptor from now on.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  void reset(int fd = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace weft
