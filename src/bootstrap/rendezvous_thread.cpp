#include "src/bootstrap/rendezvous_thread.hpp"

#include <array>
#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>

#include "src/base/log.hpp"
#include "src/base/service_thread.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::chrono::seconds kLinger{5};

}  // namespace

RendezvousThread::RendezvousThread(const Address& address, RendezvousServer::Options options)
    : RendezvousThread(listen_on(address), std::move(options)) {}

RendezvousThread::RendezvousThread(Listener listener, RendezvousServer::Options options)
    : server_(std::move(listener), std::move(options)),
      address_(server_.address()),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_.is_open()) {
    fail("eventfd failed: {}; raise the limit of open files (ulimit -n)", errno_words(errno));
  }
  thread_ = start_service_thread([this] {
    try {
      run();
    } catch (const Error& error) {  // PEs see the connection close and report it
      log::error("the rendezvous at {} stops: {}", to_string(address_), error.what());
    }
  });
}

RendezvousThread::~RendezvousThread() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void RendezvousThread::await_rest(std::uint32_t count) {
  std::unique_lock lock(mutex_);
  has_changed_.wait_for(lock, kLinger, [&] { return rest_count_ >= count; });
}

void RendezvousThread::serve(std::chrono::milliseconds wait) {
  server_.serve(wait);
  const std::lock_guard lock(mutex_);
  rest_count_ = server_.job().rest_count();
  has_changed_.notify_all();
}

void RendezvousThread::run() {
  std::array<pollfd, 2> entries{pollfd{.fd = server_.event_fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (entries[1].revents == 0) {
    ::poll(entries.data(), entries.size(), -1);
    serve(std::chrono::milliseconds(0));
  }
  serve(std::chrono::milliseconds(0));  // the last message of the PE in this process
  server_.job().say_goodbye();
  const auto deadline = Clock::now() + kLinger;
  while (server_.connection_count() > server_.job().resting_count() && Clock::now() < deadline) {
    serve(std::chrono::milliseconds(100));
  }
}

}  // namespace weft::bootstrap
