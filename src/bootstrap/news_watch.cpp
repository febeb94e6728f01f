#include "src/bootstrap/news_watch.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <poll.h>
#include <sys/eventfd.h>

#include "src/base/log.hpp"
#include "src/base/service_thread.hpp"

namespace weft::bootstrap {
namespace {

// While a call of the PE reads the connection, its readability means nothing to this thread.
constexpr int kBusyPauseMs = 50;

[[noreturn]] void end_process(Pe pe, const Error& failure) {
  log::error("PE {} ends, because its job cannot go on: {}", pe.value, failure.what());
  static_cast<void>(std::fflush(nullptr));
  // Exits without running destructors: other threads still use the objects.
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

NewsWatch::NewsWatch(TcpBootstrap& client, bool ends_when_peer_lost)
    : client_(client), ends_when_peer_lost_(ends_when_peer_lost), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_.is_open()) {
    fail("eventfd failed: {}; raise the limit of open files (ulimit -n)", errno_words(errno));
  }
  thread_ = start_service_thread([this] { run(); });
}

NewsWatch::~NewsWatch() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void NewsWatch::run() {
  std::array<pollfd, 2> entries{pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = client_.news_fd(), .events = POLLIN, .revents = 0}};
  while (true) {
    ::poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) {
      return;
    }
    switch (client_.read_news()) {
      case TcpBootstrap::News::None:
        break;
      case TcpBootstrap::News::Busy:
        ::poll(entries.data(), 1, kBusyPauseMs);
        break;
      case TcpBootstrap::News::Failure:
        if (ends_when_peer_lost_) {
          end_process(client_.pe(), *client_.failure());
        }
        log::warn("PE {} goes on in a job that lost a PE: {}", client_.pe().value,
                  client_.failure()->what());
        return;
      case TcpBootstrap::News::Over:
        return;
    }
  }
}

}  // namespace weft::bootstrap
