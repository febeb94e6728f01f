// Detects, between a PE's calls, that the job has ended or cannot continue, and exits this process.
// For launchers that do not terminate it themselves. A PE that computes for an hour makes no call
// that would report it. Where the program asked for it (WEFT_ON_PEER_LOST=report), a job that
// cannot continue is one warning: the program's calls return PeerLost.
//
// A thread of its own, asleep until the rendezvous sends something; the owner creates and destroys
// it.
#pragma once

#include <thread>

#include "src/base/file_descriptor.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"

namespace weft::bootstrap {

class NewsWatch {
 public:
  // `client` outlives it. Throws Error.
  NewsWatch(TcpBootstrap& client, bool ends_when_peer_lost);
  NewsWatch(const NewsWatch&) = delete;
  NewsWatch& operator=(const NewsWatch&) = delete;
  ~NewsWatch();

 private:
  void run();

  TcpBootstrap& client_;
  bool ends_when_peer_lost_;
  FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace weft::bootstrap
