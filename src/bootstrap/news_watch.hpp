// Hears, between a PE's calls, that the job has ended or cannot go on, and ends this process: for launchers
// that do not do so themselves. A PE that computes for an hour calls nothing in which it would be told.
//
// A thread of its own, asleep until the rendezvous says something; the owner makes it and takes it down.
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
