// The NIC interface: one NIC opened by one PE. It knows peers' addresses and keys, but no PEs and
// no policy.
//
// Owner: the rails transport, which calls every function under its own lock, so implementations
// need none. Only wait_descriptor may be polled outside of the lock. Data path: noexcept, no
// allocation by Weft.
//
// Implementations: LibfabricRail; in tests SimulatedRail, and the decorator FaultyRail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::fabric {

// A peer's rail in this rail's address vector.
using PeerHandle = StrongId<struct PeerHandleTag, std::uint64_t>;

// The owner derives from this and passes its address with each post; the event returns it.
// The provider may use the scratch space while the operation is outstanding (fi_cq(3),
// FI_CONTEXT2).
struct PostContext {
  std::array<void*, 8> provider_scratch{};
};

// After Refused and Failed, last_error() and last_action() tell the error and the call that
// returned it.
enum class PostResult : std::uint8_t {
  Posted,
  Full,     // nothing was posted: poll, then try again (-FI_EAGAIN)
  Refused,  // permanent: bad memory or arguments; the link works
  Failed,   // the link failed: the peer cannot be reached this way
};

inline constexpr const char* kRegisterAction = "fi_mr_reg";

// The local memory of an operation: any memory of this process. If the provider requires
// registration (FI_MR_LOCAL) and it is not registered, the rail registers it for the operation,
// which costs some µs. With `on_device` it lies in a region of add_device_region: only the NIC
// accesses it, so it is never injected, whatever its size.
struct LocalMemory {
  void* address = nullptr;
  std::size_t bytes = 0;
  bool on_device = false;
};

struct RemoteMemory {
  PeerHandle peer;
  std::uint64_t address = 0;  // relative to the peer's RegionKey: virtual address or offset
  RemoteKey key;
};

// What a peer needs to access a region of this rail.
struct RegionKey {
  RemoteKey key;
  std::uint64_t base = 0;  // remote address of the region's first byte
};

// GPU memory that a rail is asked to register.
struct DeviceMemory {
  std::span<std::byte> memory;
  std::int32_t gpu = -1;             // CUDA's index here; -1: host memory that stands for a GPU's
  int dma_buf = -1;                  // a descriptor of memory that contains this; -1: there is none
  std::uint64_t dma_buf_offset = 0;  // where this memory starts in it
  std::string no_dma_buf;            // why there is none, for display
};

// How a rail has registered it.
enum class DeviceWay : std::uint8_t {
  None,       // not registered: transfers are staged
  DmaBuf,     // the kernel gave the NIC the GPU's pages (FI_MR_DMABUF)
  Interface,  // libfabric asked the GPU's driver (fi_mr_attr.iface)
};

struct DeviceRegion {
  DeviceWay way = DeviceWay::None;
  RegionKey key;    // None: unused
  std::string why;  // one sentence for display: what was found, or what is missing
};

enum class EventKind : std::uint8_t {
  Completed,    // our write, read or send; a write or send has been delivered
  Received,     // a posted receive buffer holds a message of `bytes`
  RemoteWrite,  // a peer's write with `immediate` has arrived completely. `context`: of the posted
                // receive that it used up, on providers that take one for it; else null
  Failed,       // the operation of `context` did not happen, or only in part; see `error`
};

struct Event {
  EventKind kind = EventKind::Completed;
  PostContext* context = nullptr;
  std::uint32_t immediate = 0;
  std::size_t bytes = 0;
  int error = 0;  // positive libfabric error number
  int provider_error =
      0;  // of the provider, where it says more than `error`: fi_cq_err_entry.prov_errno
};

struct RailLimits {
  std::size_t inject_bytes = 0;        // up to this size a message may be reused when post returns
  std::size_t inject_write_bytes = 0;  // as above, for the source of a write: often less
  std::size_t message_bytes_max = std::numeric_limits<std::size_t>::max();  // of one send
  std::size_t rma_bytes_max = std::numeric_limits<std::size_t>::max();      // of one write or read
  std::size_t transmit_depth = 0;  // operations that may be outstanding
  std::size_t receive_depth = 0;   // receive buffers that may be posted
  bool has_immediate = true;       // writes can carry 32 bits to the target's queue
  // Entries of this rail's completion queue that are left for immediate data of peers. More at a
  // time would overrun it. No limit where the provider protects the queue, so that senders wait.
  std::size_t immediates_max = std::numeric_limits<std::size_t>::max();
  bool registers_local = false;       // local memory must be registered (FI_MR_LOCAL)
  bool is_claim = false;              // the limits of writes have not been tested: see trial.hpp
  std::uint64_t rate_bits_per_s = 0;  // 0 if unknown
};

// What can be determined about a connection without using it.
enum class LinkHealth : std::uint8_t {
  Unknown,
  Alive,
  Dead,     // this connection
  NicDown,  // all connections of this rail: the NIC itself has no carrier
};

class Rail {
 public:
  Rail() = default;
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;
  virtual ~Rail() = default;

  [[nodiscard]] virtual const RailLimits& limits() const = 0;
  // Restricts the rail to these limits, which are a subset of what it claimed.
  virtual void restrict_to(const RailLimits& limits) noexcept = 0;
  // For display: NIC and address ("eth0", "10.0.0.1"), or PCI address where the NIC has no readable
  // one.
  [[nodiscard]] virtual const std::string& nic() const = 0;
  [[nodiscard]] virtual const std::string& address_text() const = 0;
  [[nodiscard]] virtual const std::string& provider() const = 0;

  // What both sides must have in common: the provider, and its fabric where one provider has
  // several that cannot talk to each other ("efa", "efa (efa-direct)").
  [[nodiscard]] virtual std::string protocol() const { return provider(); }

  // The address that peers pass to add_peer.
  [[nodiscard]] virtual std::span<const std::byte> address() const = 0;

  // Whether peers have to be added before the first operation: it refuses what comes from others,
  // or it connects when a peer is added. Else each is added when it is first needed.
  [[nodiscard]] virtual bool adds_peers_early() const { return false; }

  // Throws Error.
  virtual PeerHandle add_peer(std::span<const std::byte> address) = 0;
  // Registers memory for remote access, until drop_region or the destruction of the rail. Throws
  // Error.
  virtual RegionKey add_region(std::span<std::byte> memory) = 0;
  // The same for GPU memory; the result may be that it is not possible. Control path.
  virtual DeviceRegion add_device_region(const DeviceMemory& memory) = 0;
  // Ends a registration of add_region or add_device_region. Call it before the memory is freed: the
  // key becomes invalid, and other memory may get the same address. No effect if the memory was not
  // registered.
  virtual void drop_region(std::span<std::byte> memory) noexcept = 0;
  // For memory that is used repeatedly and lives as long as the rail: if registration is required,
  // it is done once, here. If that fails, it is done per operation.
  virtual void keep_registered(std::span<std::byte> memory) noexcept = 0;

  virtual PostResult post_write(const LocalMemory& source,
                                const RemoteMemory& dest,
                                std::optional<std::uint32_t> immediate,
                                PostContext* context) noexcept = 0;
  virtual PostResult post_read(const LocalMemory& dest,
                               const RemoteMemory& source,
                               PostContext* context) noexcept = 0;
  virtual PostResult post_send(const LocalMemory& message,
                               PeerHandle peer,
                               PostContext* context) noexcept = 0;
  virtual PostResult post_receive(const LocalMemory& buffer, PostContext* context) noexcept = 0;

  // Takes at most events.size() events from the queue; returns their number.
  virtual std::size_t poll(std::span<Event> events) noexcept = 0;

  // The libfabric error number of the last post that was Refused or Failed, and the call that
  // returned it: kRegisterAction, or a posting call.
  [[nodiscard]] virtual int last_error() const noexcept = 0;
  [[nodiscard]] virtual const char* last_action() const noexcept = 0;
  // A Failed event in words: libfabric's, and the provider's own where they say more.
  [[nodiscard]] virtual std::string words_of(const Event& event) const;

  // A descriptor that becomes readable when poll has work; -1 if there is none.
  [[nodiscard]] virtual int wait_descriptor() const noexcept = 0;
  // False if poll already has work, which a sleep on the descriptor would miss.
  [[nodiscard]] virtual bool may_sleep() noexcept = 0;

  // Examines the connection to a peer's rail from outside; with an empty address, only the NIC.
  // Unknown if the state cannot be observed.
  [[nodiscard]] virtual LinkHealth examine(std::span<const std::byte> peer_address,
                                           std::uint32_t silent_ms) noexcept = 0;
  // Closes the connection to a peer's rail so that nothing arrives over it later; its outstanding
  // operations fail, or never complete. False if the NIC does that by itself: nothing was done.
  virtual bool cut(std::span<const std::byte> peer_address) noexcept = 0;
};

// "dma-buf", "interface", "staged".
[[nodiscard]] std::string_view to_string(DeviceWay way);

// The text of a libfabric error number.
[[nodiscard]] std::string error_words(int error);

}  // namespace weft::fabric
