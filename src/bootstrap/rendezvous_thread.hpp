// A rendezvous that runs in its own thread, for a host that has other work:
// a PE (hosted.hpp), and tests.
//
// The server belongs to the thread for its whole life. The owner only knows its address.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "src/base/file_descriptor.hpp"
#include "src/bootstrap/rendezvous_server.hpp"

namespace weft::bootstrap {

class RendezvousThread {
 public:
  // Listens before it returns. Throws Error (a port in use, ...).
  RendezvousThread(const Address& address, RendezvousServer::Options options);
  RendezvousThread(Listener listener, RendezvousServer::Options options);
  RendezvousThread(const RendezvousThread&) = delete;
  RendezvousThread& operator=(const RendezvousThread&) = delete;
  // Continues until all PEs rest or have closed their connections, 5 s at most: the last answer may
  // still be in flight.
  ~RendezvousThread();

  [[nodiscard]] const Address& address() const { return address_; }

  // Returns when every PE that is still there has come to rest `count` times, after 5 s at the
  // latest: until then they would take this process's exit for a loss.
  void await_rest(std::uint32_t count);

 private:
  void run();
  void serve(std::chrono::milliseconds wait);

  RendezvousServer server_;
  Address address_;
  FileDescriptor stop_;
  std::mutex mutex_;
  std::condition_variable has_changed_;
  std::uint32_t rest_count_ = 0;  // of the job, as of the last message; under the mutex
  std::thread thread_;
};

}  // namespace weft::bootstrap
