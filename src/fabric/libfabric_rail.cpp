#include "src/fabric/libfabric_rail.hpp"

#include <algorithm>
#include <array>

#include <sys/resource.h>

#include "src/base/error.hpp"
#include "src/fabric/endpoint_limits.hpp"
#include "src/fabric/native_info.hpp"
#include "src/fabric/quirks.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kLocalAccess = FI_READ | FI_WRITE | FI_SEND | FI_RECV;

// Sources up to the inject size may be reused when the post returns (fi_rma(3), FI_INJECT). The CPU copies them for
// that, so GPU memory is never injected.
bool is_injected(const LocalMemory& source, std::size_t inject_bytes) {
  return source.bytes <= inject_bytes && !source.on_device;
}

// Errors about an argument or a kind of operation, independent of the peer (fi_errno(3)).
bool is_about_operation(ssize_t code) {
  switch (code) {
    case -FI_EINVAL:
    case -FI_EFAULT:
    case -FI_EMSGSIZE:
    case -FI_EBADFLAGS:
    case -FI_ENOSYS:
    case -FI_EOPNOTSUPP:
    case -FI_ENOKEY:
      return true;
    default:
      return false;
  }
}

std::uint64_t flags_for(bool injected) {
  return FI_COMPLETION | FI_DELIVERY_COMPLETE | (injected ? FI_INJECT : 0);
}

std::string memlock_hint() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY
             ? std::string("lower WEFT_HEAP_SIZE")
             : fmt::format("raise RLIMIT_MEMLOCK (ulimit -l, now {} KiB) or lower WEFT_HEAP_SIZE",
                           limit.rlim_cur >> 10U);
}

// NICs such as EFA's have no readable address; where they sit says which one is meant.
const std::string& shown_address(const NicInfo& nic) {
  return !nic.address.empty() ? nic.address : !nic.pci.empty() ? nic.pci : nic.name;
}

}  // namespace

LibfabricRail::LibfabricRail(const NicInfo& nic, RailOptions options)
    : nic_(nic.name),
      address_text_(shown_address(nic)),
      provider_(nic.provider),
      object_(fmt::format("{} ({}, {})", nic.name, address_text_, nic.provider)) {
  WEFT_CHECK(nic.native != nullptr, "NIC {} was not discovered", nic.name);
  read_limits(*nic.native->info);
  limits_.registers_local = limits_.registers_local || options.registers_all;
  limits_.rate_bits_per_s = nic.rate_bits_per_s;
  open(*nic.native->info, options);
  read_sizes(*endpoint_, *nic.native->info, limits_);
  read_address();
  if (quirk_of(provider_).kernel_sockets) {
    sockets_ = std::make_unique<SocketWatch>(nic.name, address_);
  }
}

void LibfabricRail::read_limits(const fi_info& info) {
  limits_.transmit_depth = std::max<std::size_t>(info.tx_attr->size, 1);
  limits_.receive_depth = std::max<std::size_t>(info.rx_attr->size, 1);
  limits_.has_immediate = info.domain_attr->cq_data_size >= sizeof(std::uint32_t);
  limits_.is_claim = !quirk_of(provider_).is_tried;
  limits_.registers_local = (info.domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  virtual_addresses_ = (info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  has_hmem_ = (info.caps & FI_HMEM) != 0;
  endpoint_regions_ = (info.domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
}

void LibfabricRail::open(const fi_info& info, RailOptions options) {
  const char* hint = "weft-info shows what libfabric offers";
  auto* native = const_cast<fi_info*>(&info);  // libfabric's signatures lack const
  fid_fabric* fabric = nullptr;
  check(libfabric().fabric(native->fabric_attr, &fabric, nullptr), "fi_fabric", object_, hint);
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, native, &domain, nullptr), "fi_domain", object_, hint);
  domain_.reset(domain);

  open_queue(info, options);
  fi_av_attr vector_attributes{};
  vector_attributes.type = FI_AV_TABLE;
  fid_av* vector = nullptr;
  check(fi_av_open(domain, &vector_attributes, &vector, nullptr), "fi_av_open", object_, hint);
  vector_.reset(vector);

  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, native, &endpoint, nullptr), "fi_endpoint", object_, hint);
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind", object_, hint);
  check(fi_ep_bind(endpoint, &vector->fid, 0), "fi_ep_bind", object_, hint);
  if (has_hmem_) {
    require_nic_access();
  }
  check(fi_enable(endpoint), "fi_enable", object_, "is the address still on this host?");
}

void LibfabricRail::open_queue(const fi_info& info, RailOptions options) {
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_DATA;
  fid_cq* queue = nullptr;
  const auto open_with = [&](fi_wait_obj wait_object) {
    attributes.wait_obj = wait_object;
    return open_largest(queue_size_for(info), [&](std::size_t entries) {
      attributes.size = entries;
      return fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
    });
  };
  if (options.is_blind || open_with(FI_WAIT_FD) != 0) {
    // The progress thread then polls this rail.
    check(open_with(FI_WAIT_NONE), "fi_cq_open", object_, "weft-info shows what libfabric offers");
  }
  queue_.reset(queue);
  if (attributes.wait_obj == FI_WAIT_FD &&
      fi_control(&queue->fid, FI_GETWAIT, &wait_descriptor_) != 0) {
    wait_descriptor_ = -1;
  }
}

void LibfabricRail::read_address() {
  std::size_t bytes = 0;
  static_cast<void>(fi_getname(&endpoint_->fid, nullptr, &bytes));  // queries the size
  address_.resize(std::max<std::size_t>(bytes, 64));
  bytes = address_.size();
  check(fi_getname(&endpoint_->fid, address_.data(), &bytes), "fi_getname", object_,
        "a libfabric bug?");
  address_.resize(bytes);
}

PeerHandle LibfabricRail::add_peer(std::span<const std::byte> address) {
  fi_addr_t handle = FI_ADDR_UNSPEC;
  const int inserted = fi_av_insert(vector_.get(), address.data(), 1, &handle, 0, nullptr);
  if (inserted != 1) {
    fail("fi_av_insert failed on {}: {}; do both sides use the same provider?", object_,
         inserted < 0 ? error_words(-inserted) : "the address was not accepted");
  }
  return PeerHandle(handle);
}

RegionKey LibfabricRail::add_region(std::span<std::byte> memory) {
  Region region{.bytes = memory.size(), .registration = {}};
  const int error =
      enter(memory, kLocalAccess | FI_REMOTE_READ | FI_REMOTE_WRITE, region.registration);
  check(-error, "fi_mr_reg", object_, memlock_hint().c_str());
  const RegionKey key = key_of(memory.data(), region.registration.get());
  regions_.insert_or_assign(memory.data(), std::move(region));
  return key;
}

void LibfabricRail::drop_region(std::span<std::byte> memory) noexcept {
  regions_.erase(memory.data());
}

RegionKey LibfabricRail::key_of(const std::byte* first, fid_mr* registration) const {
  const auto base = virtual_addresses_ ? reinterpret_cast<std::uint64_t>(first) : 0;
  return {.key = RemoteKey(fi_mr_key(registration)), .base = base};
}

void LibfabricRail::keep_registered(std::span<std::byte> memory) noexcept {
  Region region{.bytes = memory.size(), .registration = {}};
  if (limits_.registers_local && enter(memory, kLocalAccess, region.registration) == 0) {
    regions_.insert_or_assign(memory.data(), std::move(region));
  }
}

int LibfabricRail::enter(std::span<std::byte> memory,
                         std::uint64_t access,
                         Handle<fid_mr>& result) noexcept {
  fid_mr* registration = nullptr;
  const int code = fi_mr_reg(domain_.get(), memory.data(), memory.size(), access, 0, next_key_++, 0,
                             &registration, nullptr);
  return adopt(code, registration, result);
}

int LibfabricRail::adopt(int code, fid_mr* registration, Handle<fid_mr>& result) noexcept {
  if (code == 0) {
    result.reset(registration);
  }
  if (code == 0 && endpoint_regions_) {
    code = fi_mr_bind(registration, &endpoint_->fid, 0);
    code = code == 0 ? fi_mr_enable(registration) : code;
  }
  return -code;
}

fid_mr* LibfabricRail::region_around(const LocalMemory& memory) const noexcept {
  const auto* first = static_cast<const std::byte*>(memory.address);
  const auto after = regions_.upper_bound(first);
  if (after == regions_.begin()) {
    return nullptr;
  }
  const auto& [start, region] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(first - start);
  const bool is_inside = offset <= region.bytes && memory.bytes <= region.bytes - offset;
  return is_inside ? region.registration.get() : nullptr;
}

bool LibfabricRail::describe(const LocalMemory& memory,
                             std::uint64_t access,
                             PostContext* context,
                             void*& descriptor) noexcept {
  descriptor = nullptr;
  if ((!limits_.registers_local && !memory.on_device) || memory.bytes == 0) {
    return true;
  }
  if (fid_mr* region = region_around(memory); region != nullptr) {
    descriptor = fi_mr_desc(region);
    return true;
  }
  last_action_ = kRegisterAction;
  if (memory.on_device) {
    last_error_ = FI_EINVAL;  // not of add_device_region: the GPU is unknown
    return false;
  }
  Handle<fid_mr> registration;
  last_error_ =
      enter({static_cast<std::byte*>(memory.address), memory.bytes}, access, registration);
  if (last_error_ != 0) {
    return false;
  }
  descriptor = fi_mr_desc(registration.get());
  for_operations_.insert_or_assign(context, std::move(registration));
  return true;
}

PostResult LibfabricRail::result_of(const char* action,
                                    ssize_t code,
                                    PostContext* context) noexcept {
  if (code == 0) {
    return PostResult::Posted;
  }
  for_operations_.erase(context);
  if (code == -FI_EAGAIN) {
    return PostResult::Full;
  }
  last_error_ = static_cast<int>(-code);
  last_action_ = action;
  return is_about_operation(code) ? PostResult::Refused : PostResult::Failed;
}

PostResult LibfabricRail::post_write(const LocalMemory& source,
                                     const RemoteMemory& dest,
                                     std::optional<std::uint32_t> immediate,
                                     PostContext* context) noexcept {
  const iovec local{source.address, source.bytes};
  const fi_rma_iov remote{dest.address, source.bytes, dest.key.value};
  void* descriptor = nullptr;
  const bool injected = is_injected(source, limits_.inject_write_bytes);
  if (!injected && !describe(source, FI_WRITE, context, descriptor)) {
    return PostResult::Refused;
  }
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = dest.peer.value;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = context->provider_scratch.data();
  message.data = immediate.value_or(0);
  const std::uint64_t flags = flags_for(injected) | (immediate.has_value() ? FI_REMOTE_CQ_DATA : 0);
  return result_of("fi_writemsg", fi_writemsg(endpoint_.get(), &message, flags), context);
}

PostResult LibfabricRail::post_read(const LocalMemory& dest,
                                    const RemoteMemory& source,
                                    PostContext* context) noexcept {
  void* descriptor = nullptr;
  if (!describe(dest, FI_READ, context, descriptor)) {
    return PostResult::Refused;
  }
  return result_of("fi_read",
                   fi_read(endpoint_.get(), dest.address, dest.bytes, descriptor, source.peer.value,
                           source.address, source.key.value, context->provider_scratch.data()),
                   context);
}

PostResult LibfabricRail::post_send(const LocalMemory& message,
                                    PeerHandle peer,
                                    PostContext* context) noexcept {
  const iovec local{message.address, message.bytes};
  void* descriptor = nullptr;
  const bool injected = is_injected(message, limits_.inject_bytes);
  if (!injected && !describe(message, FI_SEND, context, descriptor)) {
    return PostResult::Refused;
  }
  fi_msg native{};
  native.msg_iov = &local;
  native.desc = &descriptor;
  native.iov_count = 1;
  native.addr = peer.value;
  native.context = context->provider_scratch.data();
  return result_of("fi_sendmsg", fi_sendmsg(endpoint_.get(), &native, flags_for(injected)),
                   context);
}

PostResult LibfabricRail::post_receive(const LocalMemory& buffer, PostContext* context) noexcept {
  void* descriptor = nullptr;
  if (!describe(buffer, FI_RECV, context, descriptor)) {
    return PostResult::Refused;
  }
  return result_of("fi_recv",
                   fi_recv(endpoint_.get(), buffer.address, buffer.bytes, descriptor,
                           FI_ADDR_UNSPEC, context->provider_scratch.data()),
                   context);
}

// The scratch space is the first member of PostContext, so its address is the context's.
static_assert(offsetof(PostContext, provider_scratch) == 0);

std::size_t LibfabricRail::poll(std::span<Event> events) noexcept {
  std::array<fi_cq_data_entry, 32> entries;
  const std::size_t wanted = std::min(events.size(), entries.size());
  const ssize_t count = fi_cq_read(queue_.get(), entries.data(), wanted);
  if (count == -FI_EAVAIL && !events.empty()) {
    events[0] = take_error();
    return 1;
  }
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
    Event& event = events[static_cast<std::size_t>(i)];
    event = {.context = static_cast<PostContext*>(entry.op_context), .bytes = entry.len};
    if ((entry.flags & FI_REMOTE_WRITE) != 0) {
      event.kind = EventKind::RemoteWrite;
      event.immediate = static_cast<std::uint32_t>(entry.data);
    } else if ((entry.flags & FI_RECV) != 0) {
      event.kind = EventKind::Received;
    } else {
      event.kind = EventKind::Completed;
    }
    if (limits_.registers_local && event.kind != EventKind::RemoteWrite) {
      for_operations_.erase(event.context);
    }
  }
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

Event LibfabricRail::take_error() noexcept {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue_.get(), &entry, 0) != 1) {
    return {.kind = EventKind::Failed, .context = nullptr, .error = FI_EOTHER};
  }
  auto* context = static_cast<PostContext*>(entry.op_context);
  for_operations_.erase(context);
  return {.kind = EventKind::Failed, .context = context, .error = entry.err};
}

bool LibfabricRail::may_sleep() noexcept {
  if (wait_descriptor_ < 0) {
    return true;  // nobody sleeps on it; fi_trywait(3) is only for queues with a wait object
  }
  fid* object = &queue_->fid;
  return fi_trywait(fabric_.get(), &object, 1) == 0;
}

LinkHealth LibfabricRail::examine(std::span<const std::byte> peer_address,
                                  std::uint32_t silent_ms) noexcept {
  return sockets_ == nullptr ? LinkHealth::Unknown : sockets_->examine(peer_address, silent_ms);
}

bool LibfabricRail::cut(std::span<const std::byte> peer_address) noexcept {
  if (sockets_ != nullptr) {
    sockets_->cut(peer_address);
  }
  return sockets_ != nullptr;
}

}  // namespace weft::fabric
