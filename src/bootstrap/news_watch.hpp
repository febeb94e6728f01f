// Detects, between a PE's calls, that the job has ended or cannot continue, and exits this process. For launchers that
// do not terminate it themselves. A PE that computes for an hour makes no call that would report it.
//
// A thread of its own, asleep until the rendezvous sends something; the owner creates and destroys it.
#pragma once

#include <thread>

#include "src/base/file_descriptor.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"

namespace weft::bootstrap {

class NewsWatch {
 public:
  // `client` outlives it. Throws Error.
  explicit NewsWatch(TcpBootstrap& client);
  NewsWatch(const NewsWatch&) = delete;
  NewsWatch& operator=(const NewsWatch&) = delete;
  ~NewsWatch();

 private:
  void run();

  TcpBootstrap& client_;
  FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace weft::bootstrap
