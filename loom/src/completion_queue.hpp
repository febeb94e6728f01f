// A completion queue: what has ended and what has arrived, in the order in which it was found out;
// and the descriptor that a client sleeps on.
//
// Threads: any; its own lock. Endpoints add under theirs, so the order is endpoint, then queue.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "loom/src/failures.hpp"
#include "loom/src/settings.hpp"
#include "loom/src/uses.hpp"

namespace loom {

class Domain;
class Endpoint;

struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::uint64_t bytes = 0;
  void* buffer = nullptr;
  std::uint64_t data = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  Failure failure{};  // error 0: it went well
};

class CompletionQueue : public fid_cq {
 public:
  CompletionQueue(Domain& domain,
                  const fi_cq_attr& attributes,
                  std::size_t entries,
                  Overrun overrun,
                  void* context);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  static constexpr std::size_t kEndpointsMax = 64;

  // False: as many endpoints as may be use it.
  [[nodiscard]] bool attach(Endpoint& endpoint);
  void detach(Endpoint& endpoint);

  // False: no room, and what it tells has to be kept for later.
  [[nodiscard]] bool add(const Completion& completion);

  // As fi_cq_readfrom(3).
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t read_error(fi_cq_err_entry& entry);

  // The client is about to sleep. False if there is something to read.
  [[nodiscard]] bool arm();
  // There may be something to read.
  void signal();

  [[nodiscard]] int descriptor() const { return descriptor_; }

  // By an endpoint: then it may not be closed.
  [[nodiscard]] bool is_needed();

 private:
  template <typename Visit>
  void for_each_endpoint(Visit&& visit);
  void progress();
  [[nodiscard]] std::size_t entry_bytes() const;
  void signal_locked();
  [[nodiscard]] bool overrun();

  Use use_;
  fi_cq_format format_;
  std::size_t entries_;
  Overrun overrun_;
  int descriptor_ = -1;
  std::mutex lock_;
  std::deque<Completion> done_;
  std::vector<Endpoint*> endpoints_;
  bool is_armed_ = false;
  bool is_broken_ = false;
};

// fi_cq_open(3).
[[nodiscard]] int open_queue(fid_domain* domain,
                             fi_cq_attr* attributes,
                             fid_cq** result,
                             void* context);

}  // namespace loom
