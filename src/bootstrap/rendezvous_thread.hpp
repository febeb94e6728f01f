// A rendezvous that runs in its own thread, for a host that has other work:
// a PE (hosted.hpp), and tests.
//
// The server belongs to the thread for its whole life. The owner only knows its address.
#pragma once

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
  // Continues until all PEs have closed their connections, 5 s at most: the last answer may still be in flight.
  ~RendezvousThread();

  [[nodiscard]] const Address& address() const { return address_; }

 private:
  void run();

  RendezvousServer server_;
  Address address_;
  FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace weft::bootstrap
