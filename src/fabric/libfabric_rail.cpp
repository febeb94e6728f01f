#include "src/fabric/libfabric_rail.hpp"

#include <algorithm>
#include <array>

#include <sys/random.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/fabric/endpoint_limits.hpp"
#include "src/fabric/grown_structs.hpp"
#include "src/fabric/hints.hpp"
#include "src/fabric/native_info.hpp"
#include "src/fabric/quirks.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kLocalAccess = FI_READ | FI_WRITE | FI_SEND | FI_RECV;

// Sources up to the inject size may be reused when the post returns (fi_rma(3), FI_INJECT). The CPU
// copies them for that, so GPU memory is never injected.
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

}  // namespace

LibfabricRail::LibfabricRail(const NicInfo& nic, RailOptions options)
    : nic_(nic.name),
      address_text_(shown_address(nic)),
      provider_(nic.provider),
      fabric_name_(nic.fabric),
      object_(fmt::format("{} ({}, {})", nic.name, address_text_, nic.provider)) {
  WEFT_CHECK(nic.native != nullptr, "NIC {} was not discovered", nic.name);
  read_limits(*nic.native->info);
  limits_.registers_local = limits_.registers_local || options.registers_all;
  limits_.rate_bits_per_s = nic.rate_bits_per_s;
  open(*nic.native, options);
  read_sizes(*endpoint_, *nic.native->info, limits_);
  read_address();
  proof_ = std::make_unique<RegionProof>(
      *this, [this](std::span<Event> events) { return read_queue(events); }, kept_events_);
  if (quirk_of(provider_).kernel_sockets) {
    sockets_ = std::make_unique<SocketWatch>(nic.name, address_);
  }
}

LibfabricRail::~LibfabricRail() {
  close_endpoint();
}

// A provider with regions bound to the endpoint closes neither before the other: cxi answers
// -FI_EBUSY while a region is bound (prov/cxi/src/cxip_ep.c of libfabric 2.6). With all others the
// endpoint is closed first: until then it may use the registrations of receive buffers that are
// posted.
void LibfabricRail::close_endpoint() noexcept {
  if (endpoint_regions_) {
    regions_.clear();
    for_operations_.close_registrations();
  }
  endpoint_.reset();
}

std::string LibfabricRail::protocol() const {
  const bool has_other = quirk_of(provider_).has_fabrics && fabric_name_ != provider_;
  return has_other ? fmt::format("{} ({})", provider_, fabric_name_) : provider_;
}

void LibfabricRail::read_limits(const fi_info& info) {
  limits_.transmit_depth = std::max<std::size_t>(info.tx_attr->size, 1);
  limits_.receive_depth = std::max<std::size_t>(info.rx_attr->size, 1);
  limits_.has_immediate = info.domain_attr->cq_data_size >= sizeof(std::uint32_t);
  limits_.is_claim = !quirk_of(provider_).is_tried;
  limits_.registers_local = (info.domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  chooses_keys_ = (info.domain_attr->mr_mode & FI_MR_PROV_KEY) == 0 &&
                  info.domain_attr->mr_key_size >= sizeof(std::uint64_t);
  virtual_addresses_ = (info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  api_version_ = info.fabric_attr->api_version;
  has_hmem_ = (info.caps & FI_HMEM) != 0;
  if ((info.mode & FI_ASYNC_IOV) != 0) {
    for_operations_.keep_descriptions();
  }
  endpoint_regions_ = (info.domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
}

void LibfabricRail::open(const NativeInfo& entry, RailOptions options) {
  const char* hint = "weft-info shows what libfabric offers";
  const fi_info& info = *entry.info;
  fi_info* native = entry.info.get();
  auto* const open_fabric = entry.open_fabric != nullptr ? entry.open_fabric : libfabric().fabric;
  fid_fabric* fabric = nullptr;
  check(open_fabric(native->fabric_attr, &fabric, nullptr), "fi_fabric", object_, hint);
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
  const int opened = fi_endpoint(domain, native, &endpoint, nullptr);
  check(opened, "fi_endpoint", object_, port_hint(opened, hint).c_str());
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind", object_, hint);
  check(fi_ep_bind(endpoint, &vector->fid, 0), "fi_ep_bind", object_, hint);
  if (has_hmem_) {
    require_nic_access();
  }
  const int enabled = fi_enable(endpoint);
  check(enabled, "fi_enable", object_,
        port_hint(enabled, "is the address still on this host?").c_str());
}

void LibfabricRail::open_queue(const fi_info& info, RailOptions options) {
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_DATA;
  fid_cq* queue = nullptr;
  const QueueSize size = queue_size_for(info);
  const auto open_with = [&](fi_wait_obj wait_object) {
    attributes.wait_obj = wait_object;
    return open_largest(size, [&](std::size_t entries) {
      attributes.size = entries;
      return fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
    });
  };
  if (options.is_blind || open_with(FI_WAIT_FD) != 0) {
    // The progress thread then polls this rail.
    check(open_with(FI_WAIT_NONE), "fi_cq_open", object_, "weft-info shows what libfabric offers");
  }
  queue_.reset(queue);
  limits_.immediates_max = immediates_max_of(size, attributes.size);
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
  const int code = fi_mr_reg(domain_.get(), memory.data(), memory.size(), access, 0,
                             next_key(access), 0, &registration, nullptr);
  return adopt(code, registration, result);
}

std::uint64_t LibfabricRail::next_key(std::uint64_t access) noexcept {
  const bool is_for_peers = (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
  std::uint64_t key = next_key_++;
  if (chooses_keys_ && is_for_peers) {
    // Never cut short at this size (getrandom(2)).
    const ssize_t bytes = ::getrandom(&key, sizeof(key), 0);
    WEFT_CHECK(bytes == sizeof(key), "getrandom returned {}", bytes);
  }
  return key;
}

int LibfabricRail::adopt(int code, fid_mr* registration, Handle<fid_mr>& result) noexcept {
  if (code == 0) {
    result.reset(registration);
  }
  if (code == 0 && endpoint_regions_) {
    if (endpoint_ == nullptr) {
      return broken_;
    }
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
  for_operations_.keep(std::move(registration), context);
  return true;
}

PostResult LibfabricRail::result_of(const char* action,
                                    ssize_t code,
                                    PostContext* context) noexcept {
  if (code == 0) {
    return PostResult::Posted;
  }
  for_operations_.forget(context);
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
  if (broken_ != 0) {
    return refuse_broken();
  }
  Description here{.local = {source.address, source.bytes},
                   .remote = {dest.address, source.bytes, dest.key.value}};
  const bool injected = is_injected(source, limits_.inject_write_bytes);
  if (!injected && !describe(source, FI_WRITE, context, here.descriptor)) {
    return PostResult::Refused;
  }
  Description& description = for_operations_.place(here, context);
  fi_msg_rma message{};
  message.msg_iov = &description.local;
  message.desc = &description.descriptor;
  message.iov_count = 1;
  message.addr = dest.peer.value;
  message.rma_iov = &description.remote;
  message.rma_iov_count = 1;
  message.context = context->provider_scratch.data();
  message.data = immediate.value_or(0);
  const std::uint64_t flags = flags_for(injected) | (immediate.has_value() ? FI_REMOTE_CQ_DATA : 0);
  return result_of("fi_writemsg", fi_writemsg(endpoint_.get(), &message, flags), context);
}

PostResult LibfabricRail::post_read(const LocalMemory& dest,
                                    const RemoteMemory& source,
                                    PostContext* context) noexcept {
  if (broken_ != 0) {
    return refuse_broken();
  }
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
  if (broken_ != 0) {
    return refuse_broken();
  }
  Description here{.local = {message.address, message.bytes}};
  const bool injected = is_injected(message, limits_.inject_bytes);
  if (!injected && !describe(message, FI_SEND, context, here.descriptor)) {
    return PostResult::Refused;
  }
  Description& description = for_operations_.place(here, context);
  fi_msg native{};
  native.msg_iov = &description.local;
  native.desc = &description.descriptor;
  native.iov_count = 1;
  native.addr = peer.value;
  native.context = context->provider_scratch.data();
  return result_of("fi_sendmsg", fi_sendmsg(endpoint_.get(), &native, flags_for(injected)),
                   context);
}

// The owner tries a link again as long as it likes: each try ends here.
PostResult LibfabricRail::refuse_broken() noexcept {
  last_error_ = broken_;
  last_action_ = "fi_cq_read";
  return PostResult::Failed;
}

PostResult LibfabricRail::post_receive(const LocalMemory& buffer, PostContext* context) noexcept {
  if (broken_ != 0) {
    return PostResult::Full;  // for good: nothing arrives
  }
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
  if (!kept_events_.empty()) {
    const std::size_t count = std::min(events.size(), kept_events_.size());
    std::copy_n(kept_events_.begin(), count, events.begin());
    kept_events_.erase(kept_events_.begin(), kept_events_.begin() + static_cast<long>(count));
    return count;
  }
  return read_queue(events);
}

std::size_t LibfabricRail::read_queue(std::span<Event> events) noexcept {
  if (broken_ != 0 || events.empty()) {
    return 0;
  }
  std::array<fi_cq_data_entry, 32> entries;
  const std::size_t wanted = std::min(events.size(), entries.size());
  const ssize_t count = fi_cq_read(queue_.get(), entries.data(), wanted);
  if (count < 0) {
    if (count == -FI_EAGAIN || count == -FI_EINTR) {
      return 0;
    }
    events[0] = count == -FI_EAVAIL ? take_error() : give_up(static_cast<int>(-count));
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
    for_operations_.forget(event.context);  // of a RemoteWrite: the receive that it used up, if any
  }
  return static_cast<std::size_t>(count);
}

Event LibfabricRail::take_error() noexcept {
  GrownErrorEntry grown{};
  fi_cq_err_entry& entry = grown.entry;
  const ssize_t count = fi_cq_readerr(queue_.get(), &entry, 0);
  if (count != 1) {
    return count < 0 && count != -FI_EAGAIN
               ? give_up(static_cast<int>(-count))
               : Event{.kind = EventKind::Failed, .context = nullptr, .error = FI_EOTHER};
  }
  auto* context = static_cast<PostContext*>(entry.op_context);
  for_operations_.forget(context);
  return {.kind = EventKind::Failed,
          .context = context,
          .error = entry.err,
          .provider_error = entry.prov_errno};
}

// An overrun, on providers that say so, or a queue that broke otherwise.
Event LibfabricRail::give_up(int error) noexcept {
  broken_ = error;
  log::error(
      "{}: its completion queue has failed ({}); this NIC is out of use, and others take over its "
      "traffic",
      object_, error_words(error));
  close_endpoint();
  return {.kind = EventKind::Failed, .context = nullptr, .error = error};
}

std::string LibfabricRail::words_of(const Event& event) const {
  const std::string general = error_words(event.error);
  if (event.provider_error == 0 || queue_ == nullptr) {
    return general;
  }
  std::array<char, 128> text{};
  const char* const own =
      fi_cq_strerror(queue_.get(), event.provider_error, nullptr, text.data(), text.size());
  const std::string words = own == nullptr ? "" : own;
  if (words.empty() || words == general) {
    return general;
  }
  return fmt::format("{} ({} {}: {})", general, provider_, event.provider_error, words);
}

bool LibfabricRail::may_sleep() noexcept {
  if (!kept_events_.empty()) {
    return false;
  }
  if (wait_descriptor_ < 0 || broken_ != 0) {
    return true;  // nobody sleeps on it; fi_trywait(3) is only for queues with a wait object
  }
  fid* object = &queue_->fid;
  return fi_trywait(fabric_.get(), &object, 1) == 0;
}

LinkHealth LibfabricRail::examine(std::span<const std::byte> peer_address,
                                  std::uint32_t silent_ms) noexcept {
  if (broken_ != 0) {
    return LinkHealth::NicDown;
  }
  return sockets_ == nullptr ? LinkHealth::Unknown : sockets_->examine(peer_address, silent_ms);
}

bool LibfabricRail::cut(std::span<const std::byte> peer_address) noexcept {
  if (sockets_ != nullptr) {
    sockets_->cut(peer_address);
  }
  return sockets_ != nullptr || broken_ != 0;
}

}  // namespace weft::fabric
