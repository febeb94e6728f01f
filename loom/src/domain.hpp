// The objects of libfabric that only hold something: a fabric, a domain (one NIC opened), an
// address vector, registered memory, a counter.
//
// Threads: any. Address vectors have a lock of their own; the others do not change.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "loom/src/address.hpp"
#include "loom/src/fabric_link.hpp"
#include "loom/src/uses.hpp"

namespace loom {

class Fabric : public fid_fabric {
 public:
  Fabric(FabricLink& link, const FabricKind& kind, void* context);

  [[nodiscard]] FabricLink& link() const { return link_; }

  [[nodiscard]] const FabricKind& kind() const { return kind_; }

  // Domains.
  Users users;

  // Whether it may not be closed now; so with all objects that others belong to.
  [[nodiscard]] bool is_needed() const { return needs_order() && users.any(); }

  [[nodiscard]] bool needs_order() const { return link_.settings().close_order != 0; }

 private:
  FabricLink& link_;
  const FabricKind& kind_;
};

class Domain : public fid_domain {
 public:
  // `caps`: of the fi_info that it is opened with.
  Domain(Fabric& fabric, std::uint32_t nic, std::uint64_t caps, void* context);

  [[nodiscard]] FabricLink& link() const { return fabric_.link(); }

  [[nodiscard]] const FabricKind& kind() const { return fabric_.kind(); }

  // Its index in the segment.
  [[nodiscard]] std::uint32_t nic() const { return nic_; }

  // Whether its completion queues have a descriptor (FI_WAIT_FD).
  [[nodiscard]] bool sleeps() const;

  // Whatever has been opened on it.
  Users users;

  [[nodiscard]] bool needs_order() const { return fabric_.needs_order(); }

  [[nodiscard]] bool is_needed() const { return needs_order() && users.any(); }

 private:
  Fabric& fabric_;
  Use use_{fabric_.users};
  std::uint32_t nic_;
  std::uint64_t caps_;
};

class AddressVector : public fid_av {
 public:
  AddressVector(Domain& domain, void* context);

  // Endpoints that are bound to it.
  Users users;

  [[nodiscard]] bool is_needed() const { return domain_.needs_order() && users.any(); }

  // FI_ADDR_NOTAVAIL for bytes that are no address.
  fi_addr_t insert(const void* bytes);
  bool remove(fi_addr_t address);
  [[nodiscard]] std::optional<EndpointName> find(fi_addr_t address);
  [[nodiscard]] fi_addr_t find(EndpointName name);

  // An endpoint uses it: its peers see there whom it knows.
  void attach(KnownPeers& known);
  void detach(KnownPeers& known);

 private:
  Domain& domain_;
  Use use_{domain_.users};
  std::mutex lock_;
  std::vector<KnownPeers*> known_;  // of its endpoints
  std::vector<std::optional<EndpointName>> names_;
  std::map<std::uint32_t, fi_addr_t> by_slot_;  // the newest of each slot
};

// Registered memory. The slot of the segment is taken only where peers may reach it.
class Memory : public fid_mr {
 public:
  struct Range {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t access = 0;
    bool is_gpu = false;  // memory of a GPU
  };

  Memory(Domain& domain, Range range, void* context);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // To an endpoint, where the fabric wants that (FI_MR_ENDPOINT); `users` are that endpoint's.
  void bind(Users& users) { endpoint_use_.emplace(users); }

  // Takes its pages; 0, or a negative error.
  [[nodiscard]] int pin();

  // Opens the slot; 0, or a negative error: all are taken, or a GPU's memory cannot be shared.
  [[nodiscard]] int open();

  [[nodiscard]] const Range& range() const { return range_; }

 private:
  Domain& domain_;
  Use use_{domain_.users};
  std::optional<Use> endpoint_use_;
  Range range_;
  std::optional<std::size_t> slot_;
  bool is_kept_ = false;  // from children (fork_support.hpp)
};

// Whether the first of these descriptors, if there is one, is of a GPU's memory.
[[nodiscard]] bool is_gpu_memory(void* const* descriptors);

// Counts operations that have ended (fi_cntr(3)).
class Counter : public fid_cntr {
 public:
  Counter(Domain& domain, void* context);

  std::atomic<std::uint64_t> value{0};
  std::atomic<std::uint64_t> errors{0};

 private:
  Use use_;
};

// Tables of functions.
[[nodiscard]] fi_ops_mr* memory_ops();
[[nodiscard]] int open_vector(fid_domain* domain,
                              fi_av_attr* attributes,
                              fid_av** result,
                              void* context);
[[nodiscard]] int open_counter(fid_domain* domain,
                               fi_cntr_attr* attributes,
                               fid_cntr** result,
                               void* context);
[[nodiscard]] int open_fabric(fi_fabric_attr* attributes, fid_fabric** result, void* context);

}  // namespace loom
