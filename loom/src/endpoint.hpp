// An endpoint: what a client posts, its way over the emulated NICs, and what arrives for it.
//
// Threads: any; one lock for each endpoint. The client moves it on when it posts and reads its
// queue, the engine's thread whenever something is due and the client does not look.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "loom/src/completion_queue.hpp"
#include "loom/src/domain.hpp"
#include "loom/src/operation.hpp"
#include "loom/src/receiver.hpp"
#include "loom/src/transmitter.hpp"

namespace loom {

class Endpoint : public fid_ep {
 public:
  enum class By : std::uint8_t { Client, Engine };

  // `mode`: of the fi_info that it is opened with.
  Endpoint(Domain& domain, std::uint64_t mode, void* context);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // Regions that are bound to it.
  Users users;

  [[nodiscard]] bool is_needed() const { return domain_.needs_order() && users.any(); }

  // Libfabric's calls; 0 or a negative error.
  [[nodiscard]] int bind(struct fid* object, std::uint64_t flags);
  [[nodiscard]] int enable();
  [[nodiscard]] int set_option(int name, const void* value, std::size_t bytes);
  [[nodiscard]] int get_option(int name, void* value, std::size_t* bytes) const;
  [[nodiscard]] int name(void* bytes, std::size_t* size) const;
  [[nodiscard]] ssize_t post(const Request& request);
  // atomics.cpp
  [[nodiscard]] ssize_t post_atomic(const AtomicRequest& atomic, Request request);

  [[nodiscard]] bool has_atomics() const { return (kind_.caps & FI_ATOMIC) != 0; }

  [[nodiscard]] ssize_t post_receive(void* buffer, std::size_t bytes, void* context);

  // Moves on whatever is due. Returns when something is due next, or Transmitter::kNever.
  std::uint64_t progress(By by);

  // The client goes to sleep: from now on the engine looks.
  void leave_to_engine();
  [[nodiscard]] bool client_looked_since(std::uint64_t ns) const;
  [[nodiscard]] bool has_arrivals() const;

 private:
  [[nodiscard]] int set_gpu_option(int name, const void* value, std::size_t bytes) const;
  [[nodiscard]] int set_unsolicited(const void* value, std::size_t bytes);
  [[nodiscard]] bool data_takes_receives() const;
  // posting.cpp
  [[nodiscard]] ssize_t check(const Request& request, std::uint64_t bytes) const;
  [[nodiscard]] ssize_t enqueue(const Request& request, EndpointName target, std::uint64_t bytes);
  [[nodiscard]] ssize_t enqueue_copied(Request request, EndpointName target, std::uint64_t bytes);
  [[nodiscard]] bool is_copied_by_cpu(const Request& request, std::uint64_t bytes) const;
  [[nodiscard]] ssize_t check_data(const Request& request) const;
  [[nodiscard]] ssize_t check_injected(const Request& request, std::uint64_t bytes) const;

  Domain& domain_;
  Use use_{domain_.users};
  std::optional<Use> vector_use_;
  const FabricKind& kind_;
  Segment& segment_;
  AddressVector* vector_ = nullptr;
  CompletionQueue* transmit_queue_ = nullptr;
  CompletionQueue* receive_queue_ = nullptr;
  std::vector<Counter*> counters_;
  EndpointName name_;
  bool has_receives_for_data_;  // FI_RX_CQ_DATA
  bool takes_unsolicited_ = true;
  bool is_enabled_ = false;
  std::atomic<std::uint64_t> client_looked_ns_{0};
  std::mutex lock_;
  Transmitter transmitter_;
  Receiver receiver_;
};

// fi_endpoint(3).
[[nodiscard]] int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** result, void* context);

// posting.cpp
[[nodiscard]] fi_ops_msg* message_ops();
[[nodiscard]] fi_ops_rma* rma_ops();
// atomics.cpp
[[nodiscard]] fi_ops_atomic* atomic_ops();

}  // namespace loom
