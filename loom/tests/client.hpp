// A client of libfabric on emulated NICs, for tests: two endpoints in one process, each with a
// queue and a registered buffer. The fabric belongs to the process and has a name of its own.
//
// Threads: one.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loom::test {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

using Info = std::unique_ptr<fi_info, FreeInfo>;

// What a client offers that takes whatever there is.
[[nodiscard]] Info wide_hints();

// All that is offered for the hints; null if nothing is.
[[nodiscard]] Info offered(const fi_info* hints);

// One entry of a completion queue, or its error.
struct Ended {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::uint64_t data = 0;
  std::size_t bytes = 0;
  int error = 0;
  int provider_error = 0;
};

// What a peer knows an endpoint by.
using Name = std::array<std::byte, 64>;

class Client {
 public:
  struct Options {
    std::size_t nic = 0;
    std::size_t buffer_bytes = std::size_t{1} << 20U;
    std::size_t queue_entries = 0;
    fi_wait_obj wait = FI_WAIT_NONE;
    bool has_gpu = false;          // asks for FI_HMEM
    const char* fabric = nullptr;  // asks for this one
  };

  Client() : Client(Options{}) {}

  explicit Client(Options options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // The peer's handle.
  [[nodiscard]] fi_addr_t add(const Client& peer);
  [[nodiscard]] fi_addr_t add(const Name& peer);
  void remove(fi_addr_t peer);
  // Its handle, once either knows the other's address.
  [[nodiscard]] fi_addr_t meet(Client& peer);

  [[nodiscard]] Name name() const;

  [[nodiscard]] std::vector<std::byte>& memory() { return memory_; }

  [[nodiscard]] fid_ep* endpoint() const { return endpoint_; }

  [[nodiscard]] fid_cq* queue() const { return queue_; }

  [[nodiscard]] fid_fabric* fabric() const { return fabric_; }

  [[nodiscard]] fid_domain* domain() const { return domain_; }

  [[nodiscard]] fid_av* vector() const { return vector_; }

  // All that it has opened, as it may be closed.
  [[nodiscard]] std::array<fid*, 6> in_closing_order() const {
    return {&region_->fid, &endpoint_->fid, &queue_->fid,
            &vector_->fid, &domain_->fid,   &fabric_->fid};
  }

  // The caller has closed everything.
  void forget() { fabric_ = nullptr; }

  [[nodiscard]] void* descriptor() const { return fi_mr_desc(region_); }

  [[nodiscard]] std::uint64_t key() const { return fi_mr_key(region_); }

  // Of a byte of the memory, as a peer has to name it.
  [[nodiscard]] std::uint64_t remote(std::size_t offset) const;

  [[nodiscard]] const fi_info& info() const { return *info_; }

  // Writes the first bytes of my memory to the same place of the peer's.
  ssize_t write(fi_addr_t peer,
                const Client& target,
                std::size_t bytes,
                std::optional<std::uint64_t> data = {},
                std::uint64_t flags = 0);
  ssize_t receive(std::size_t offset, std::size_t bytes, void* context);

  // The next that ends, waiting at most so long while `other` makes progress too.
  [[nodiscard]] std::optional<Ended> next(double seconds = 5, Client* other = nullptr);
  [[nodiscard]] std::optional<Ended> look();

 private:
  Info info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* vector_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_mr* region_ = nullptr;
  std::vector<std::byte> memory_;
};

}  // namespace loom::test
