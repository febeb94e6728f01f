// What SocketWatch finds out about TCP connections from outside, on connections of this test over
// loopback.
#include "src/fabric/socket_watch.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint32_t kSilentMs = 400;
constexpr std::chrono::seconds kPatience{20};

std::span<const std::byte> bytes_of(const sockaddr_in& address) {
  return std::as_bytes(std::span(&address, 1));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port that answers `backlog` + 1 connections; the kernel drops what further ones send.
class Listener {
 public:
  explicit Listener(int backlog) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (!socket_.is_open()) {
      fail("no socket: {}", errno_words(errno));
    }
    address_ = loopback(0);
    socklen_t bytes = sizeof(address_);
    auto* name = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(::bind(socket_.get(), name, bytes), 0);
    EXPECT_EQ(::listen(socket_.get(), backlog), 0);
    EXPECT_EQ(::getsockname(socket_.get(), name, &bytes), 0);
  }

  // The connection is begun when this returns.
  [[nodiscard]] FileDescriptor begin_connection() const {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int result =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_));
    EXPECT_TRUE(result == 0 || errno == EINPROGRESS) << errno;
    return socket;
  }

  [[nodiscard]] const sockaddr_in& address() const { return address_; }

 private:
  FileDescriptor socket_;
  sockaddr_in address_{};
};

TEST(SocketWatch, ConnectionThatIsEstablishedIsAlive) {
  const Listener listener(1);
  const FileDescriptor connection = listener.begin_connection();
  const SocketWatch watch("lo", bytes_of(loopback(0)));
  EXPECT_EQ(watch.examine(bytes_of(listener.address()), kSilentMs), LinkHealth::Alive);
}

TEST(SocketWatch, ConnectionThatNobodyAnswersIsDead) {
  const Listener listener(0);
  const FileDescriptor answered = listener.begin_connection();
  const SocketWatch watch("lo", bytes_of(loopback(0)));
  const auto health = [&] { return watch.examine(bytes_of(listener.address()), kSilentMs); };
  ASSERT_EQ(health(), LinkHealth::Alive);
  const FileDescriptor silent = listener.begin_connection();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (health() != LinkHealth::Dead && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(health(), LinkHealth::Dead);
  watch.cut(bytes_of(listener.address()));
  EXPECT_NE(health(), LinkHealth::Dead);
}

}  // namespace
}  // namespace weft::fabric
