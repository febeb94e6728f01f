// A rail over libfabric: fabric, domain, endpoint, address vector and completion queue of one NIC.
//
// Called under the owner's lock, so the domain is opened with FI_THREAD_DOMAIN: the provider needs
// no locks of its own. Writes and sends request delivery completion: a Completed event means that
// the bytes are in the peer's memory (or receive buffer). GPU memory is handled in
// device_region.cpp.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/fabric/discovery.hpp"
#include "src/fabric/handles.hpp"
#include "src/fabric/operation_memory.hpp"
#include "src/fabric/quirks.hpp"
#include "src/fabric/rail.hpp"
#include "src/fabric/region_proof.hpp"
#include "src/fabric/socket_watch.hpp"

namespace weft::fabric {

class LibfabricRail final : public Rail {
 public:
  explicit LibfabricRail(const NicInfo& nic, RailOptions options = {});
  LibfabricRail(const LibfabricRail&) = delete;
  LibfabricRail& operator=(const LibfabricRail&) = delete;
  ~LibfabricRail() override;

  [[nodiscard]] const RailLimits& limits() const override { return limits_; }

  void restrict_to(const RailLimits& limits) noexcept override { limits_ = limits; }

  [[nodiscard]] const std::string& nic() const override { return nic_; }

  [[nodiscard]] const std::string& address_text() const override { return address_text_; }

  [[nodiscard]] const std::string& provider() const override { return provider_; }

  [[nodiscard]] std::string protocol() const override;

  [[nodiscard]] std::span<const std::byte> address() const override { return address_; }

  [[nodiscard]] bool adds_peers_early() const override {
    return inserts_early(provider_, fabric_name_);
  }

  PeerHandle add_peer(std::span<const std::byte> address) override;
  RegionKey add_region(std::span<std::byte> memory) override;
  DeviceRegion add_device_region(const DeviceMemory& memory) override;
  void drop_region(std::span<std::byte> memory) noexcept override;
  void keep_registered(std::span<std::byte> memory) noexcept override;

  PostResult post_write(const LocalMemory& source,
                        const RemoteMemory& dest,
                        std::optional<std::uint32_t> immediate,
                        PostContext* context) noexcept override;
  PostResult post_read(const LocalMemory& dest,
                       const RemoteMemory& source,
                       PostContext* context) noexcept override;
  PostResult post_send(const LocalMemory& message,
                       PeerHandle peer,
                       PostContext* context) noexcept override;
  PostResult post_receive(const LocalMemory& buffer, PostContext* context) noexcept override;

  std::size_t poll(std::span<Event> events) noexcept override;

  [[nodiscard]] int last_error() const noexcept override { return last_error_; }

  [[nodiscard]] const char* last_action() const noexcept override { return last_action_; }

  [[nodiscard]] std::string words_of(const Event& event) const override;

  [[nodiscard]] int wait_descriptor() const noexcept override { return wait_descriptor_; }

  [[nodiscard]] bool may_sleep() noexcept override;

  // Registrations made for outstanding operations.
  [[nodiscard]] std::size_t operation_registrations() const {
    return for_operations_.registrations();
  }

  // What is kept of outstanding operations because the provider reads it until they are complete
  // (FI_ASYNC_IOV).
  [[nodiscard]] std::size_t kept_descriptions() const { return for_operations_.descriptions(); }

  [[nodiscard]] LinkHealth examine(std::span<const std::byte> peer_address,
                                   std::uint32_t silent_ms) noexcept override;
  bool cut(std::span<const std::byte> peer_address) noexcept override;

 private:
  struct Region {
    std::size_t bytes = 0;
    Handle<fid_mr> registration;
  };

  void open(const NativeInfo& entry, RailOptions options);
  void open_queue(const fi_info& info, RailOptions options);
  void read_limits(const fi_info& info);
  void read_address();
  // A libfabric error number, or 0.
  int enter(std::span<std::byte> memory, std::uint64_t access, Handle<fid_mr>& result) noexcept;
  // For a registration: see chooses_keys_.
  [[nodiscard]] std::uint64_t next_key(std::uint64_t access) noexcept;
  // Takes ownership of the result of fi_mr_reg or fi_mr_regattr.
  int adopt(int code, fid_mr* registration, Handle<fid_mr>& result) noexcept;
  void require_nic_access();
  // Why this rail cannot register GPU memory; empty if it can.
  [[nodiscard]] std::string device_refusal() const;
  int enter_dma_buf(const DeviceMemory& memory, Handle<fid_mr>& result) noexcept;
  int enter_interface(const DeviceMemory& memory, Handle<fid_mr>& result) noexcept;
  // Registers it this way and proves it. Empty if it is registered; else why not.
  std::string take_region(DeviceWay way, const DeviceMemory& memory, RegionKey& key);
  // The completion queue has failed for good: closes the endpoint, so that nothing arrives any
  // more.
  Event give_up(int error) noexcept;
  // Before the provider's other objects, in the order that it asks for.
  void close_endpoint() noexcept;
  [[nodiscard]] RegionKey key_of(const std::byte* first, fid_mr* registration) const;
  // The descriptor for an operation on `memory`; injected operations need none (fi_msg(3)). False
  // if registration failed: see last_error_. `access` is exactly what the operation needs, so that
  // read-only memory can be sent.
  bool describe(const LocalMemory& memory,
                std::uint64_t access,
                PostContext* context,
                void*& descriptor) noexcept;
  [[nodiscard]] fid_mr* region_around(const LocalMemory& memory) const noexcept;
  PostResult result_of(const char* action, ssize_t code, PostContext* context) noexcept;
  PostResult refuse_broken() noexcept;
  std::size_t read_queue(std::span<Event> events) noexcept;
  Event take_error() noexcept;

  std::string nic_;
  std::string address_text_;
  std::string provider_;
  std::string fabric_name_;
  std::string object_;  // "nic0 (10.0.0.1, tcp)" for messages
  RailLimits limits_;
  bool virtual_addresses_ = false;
  bool endpoint_regions_ = false;
  std::uint32_t api_version_ = 0;  // that the entry was asked for
  bool has_hmem_ = false;          // FI_HMEM was requested and granted
  int nic_access_error_ = 0;       // of FI_OPT_FI_HMEM_P2P
  int small_copies_error_ =
      0;            // of FI_OPT_CUDA_API_PERMITTED, where the provider copies small writes
  int broken_ = 0;  // the error of the completion queue that ended this rail
  int wait_descriptor_ = -1;
  int last_error_ = 0;
  const char* last_action_ = "";
  // The key of a region is what guards it, and we choose it (not FI_MR_PROV_KEY): peers get one
  // that nobody can guess.
  bool chooses_keys_ = false;
  std::uint64_t next_key_ = 1;
  std::vector<std::byte> address_;
  std::unique_ptr<SocketWatch> sockets_;  // only if connections are sockets of this process

  std::deque<Event> kept_events_;  // arrived during a proof: the next of poll
  std::unique_ptr<RegionProof> proof_;

  // Destroyed in reverse order, after close_endpoint: libfabric requires children to be closed
  // before parents.
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
  Handle<fid_cq> queue_;
  Handle<fid_av> vector_;
  std::map<const std::byte*, Region> regions_;  // by first byte; no overlap
  OperationMemory for_operations_;
  Handle<fid_ep> endpoint_;
};

}  // namespace weft::fabric
