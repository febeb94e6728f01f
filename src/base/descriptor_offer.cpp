#include "src/base/descriptor_offer.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/service_thread.hpp"
#include "src/base/units.hpp"

namespace weft {
namespace {

constexpr int kBacklog = 128;

struct SocketAddress {
  sockaddr_un value{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t bytes = 0;
};

// A first byte of 0 makes the name one of no file system.
SocketAddress address_of(const std::string& name) {
  SocketAddress address;
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

FileDescriptor open_socket() {
  return FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

bool is_own_user(int connection) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == ::geteuid();
}

// One byte with one descriptor, to be sent or received.
class DescriptorMessage {
 public:
  DescriptorMessage() {
    header_.msg_iov = &bytes_;
    header_.msg_iovlen = 1;
    header_.msg_control = room_.data();
    header_.msg_controllen = room_.size();
  }

  void attach(int descriptor) {
    cmsghdr* control = CMSG_FIRSTHDR(&header_);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(descriptor));
    std::memcpy(CMSG_DATA(control), &descriptor, sizeof(descriptor));
  }

  [[nodiscard]] int attached() {
    int descriptor = -1;
    const cmsghdr* control = CMSG_FIRSTHDR(&header_);
    if (control != nullptr && control->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(control), sizeof(descriptor));
    }
    return descriptor;
  }

  [[nodiscard]] msghdr* header() { return &header_; }

 private:
  char byte_ = 0;
  iovec bytes_{.iov_base = &byte_, .iov_len = 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> room_{};
  msghdr header_{};
};

}  // namespace

DescriptorOffer::DescriptorOffer(int descriptor)
    : descriptor_(descriptor),
      name_(random_name()),
      socket_(open_socket()),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  const SocketAddress address = address_of(name_);
  if (stop_.get() < 0 || socket_.get() < 0 ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.value), address.bytes) !=
          0 ||
      ::listen(socket_.get(), kBacklog) != 0) {
    fail(Status::Internal, "offering a descriptor to other processes: {}", errno_words(errno));
  }
  thread_ = start_service_thread([this] { serve(); });
}

DescriptorOffer::~DescriptorOffer() {
  static_cast<void>(::eventfd_write(stop_.get(), 1));
  thread_.join();
}

void DescriptorOffer::serve() {
  std::array<pollfd, 2> awaited{pollfd{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (::poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if (awaited[1].revents != 0) {
      return;
    }
    const FileDescriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() >= 0 && is_own_user(connection.get())) {
      DescriptorMessage message;
      message.attach(descriptor_);
      static_cast<void>(::sendmsg(connection.get(), message.header(), MSG_NOSIGNAL));
    }
  }
}

FileDescriptor take_offered(const std::string& name) {
  const FileDescriptor socket = open_socket();
  const SocketAddress address = address_of(name);
  if (socket.get() < 0 || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.value),
                                    address.bytes) != 0) {
    return {};
  }
  DescriptorMessage message;
  const auto bytes = ::recvmsg(socket.get(), message.header(), MSG_CMSG_CLOEXEC);
  if (bytes == 0) {
    errno = EACCES;
  }
  return FileDescriptor(bytes == 1 ? message.attached() : -1);
}

}  // namespace weft
