// Opening, binding, enabling and options of endpoints.
//
// Threads: set-up by one thread before enable(), as libfabric asks.
#include "loom/src/endpoint.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "loom/src/engine.hpp"
#include "loom/src/slots.hpp"
#include "loom/src/stubs.hpp"

namespace loom {
namespace {

// Names of options that are newer than libfabric 1.17's headers (fi_endpoint(3) of 2.6).
enum Option : int {
  kSharedMemoryPermitted = 11,
  kMaxMessageBytes = 12,
  kMaxTaggedBytes = 13,
  kMaxRmaBytes = 14,
  kMaxAtomicBytes = 15,
  kInjectMessageBytes = 16,
  kInjectTaggedBytes = 17,
  kInjectRmaBytes = 18,
  kInjectAtomicBytes = 19,
  kCudaApiPermitted = 10,
  // The provider's own (fi_ext.h, FI_PROV_SPECIFIC_EFA).
  kEfaRnrRetry = -(0xefa << 16),
  kEfaEmulatedRead = kEfaRnrRetry + 1,
  kEfaEmulatedWrite = kEfaRnrRetry + 2,
  kEfaEmulatedAtomics = kEfaRnrRetry + 3,
  kEfaUseDeviceRdma = kEfaRnrRetry + 4,
  kEfaSendInOrder = kEfaRnrRetry + 5,
  kEfaWriteInOrder = kEfaRnrRetry + 6,
  kEfaHomogeneousPeers = kEfaRnrRetry + 7,
  kEfaUseUnsolicitedWriteReceive = kEfaRnrRetry + 8,
};

fi_ops kEndpointFidOps{.size = sizeof(fi_ops),
                       .close = close_object<Endpoint, fid_ep>,
                       .bind =
                           [](fid* handle, fid* object, std::uint64_t flags) {
                             return object_of_fid<Endpoint, fid_ep>(handle).bind(object, flags);
                           },
                       .control =
                           [](fid* handle, int command, void*) {
                             return command == FI_ENABLE
                                        ? object_of_fid<Endpoint, fid_ep>(handle).enable()
                                        : -FI_ENOSYS;
                           },
                       .ops_open = kNotThere,
                       .tostr = kNotThere,
                       .ops_set = kNotThere};

fi_ops_ep kEndpointOps{
    .size = sizeof(fi_ops_ep),
    .cancel = kNotThere,
    .getopt =
        [](fid_t handle, int level, int name, void* value, std::size_t* bytes) {
          return level == FI_OPT_ENDPOINT
                     ? object_of_fid<Endpoint, fid_ep>(handle).get_option(name, value, bytes)
                     : -FI_ENOPROTOOPT;
        },
    .setopt =
        [](fid_t handle, int level, int name, const void* value, std::size_t bytes) {
          return level == FI_OPT_ENDPOINT
                     ? object_of_fid<Endpoint, fid_ep>(handle).set_option(name, value, bytes)
                     : -FI_ENOPROTOOPT;
        },
    .tx_ctx = kNotThere,
    .rx_ctx = kNotThere,
    .rx_size_left = kNotThere,
    .tx_size_left = kNotThere};

fi_ops_cm kNameOps{.size = sizeof(fi_ops_cm),
                   .setname = kNotThere,
                   .getname =
                       [](fid_t handle, void* bytes, std::size_t* size) {
                         return object_of_fid<Endpoint, fid_ep>(handle).name(bytes, size);
                       },
                   .getpeer = kNotThere,
                   .connect = kNotThere,
                   .listen = kNotThere,
                   .accept = kNotThere,
                   .reject = kNotThere,
                   .shutdown = kNotThere,
                   .join = kNotThere};

fi_ops_tagged kNoTagged{.size = sizeof(fi_ops_tagged),
                        .recv = kNotThere,
                        .recvv = kNotThere,
                        .recvmsg = kNotThere,
                        .send = kNotThere,
                        .sendv = kNotThere,
                        .sendmsg = kNotThere,
                        .inject = kNotThere,
                        .senddata = kNotThere,
                        .injectdata = kNotThere};

template <typename T>
int give(void* value, std::size_t* bytes, T answer) {
  if (*bytes < sizeof(answer)) {
    return -FI_ETOOSMALL;
  }
  std::memcpy(value, &answer, sizeof(answer));
  *bytes = sizeof(answer);
  return 0;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, std::uint64_t mode, void* context)
    : fid_ep{},
      domain_(domain),
      kind_(domain.kind()),
      segment_(domain.link().segment()),
      has_receives_for_data_((mode & FI_RX_CQ_DATA) != 0),
      transmitter_(domain),
      receiver_(domain, transmitter_) {
  fid.fclass = FI_CLASS_EP;
  fid.context = context;
  fid.ops = &kEndpointFidOps;
  ops = &kEndpointOps;
  cm = &kNameOps;
  msg = message_ops();
  rma = rma_ops();
  tagged = &kNoTagged;
  atomic = atomic_ops();
}

Endpoint::~Endpoint() {
  if (!is_enabled_) {
    return;
  }
  remove_from_engine(*this);
  transmit_queue_->detach(*this);
  receive_queue_->detach(*this);
  vector_->detach(segment_.known_peers[name_.slot]);
  close_slot(segment_.endpoints[name_.slot]);
}

int Endpoint::bind(struct fid* object, std::uint64_t flags) {
  switch (object->fclass) {
    case FI_CLASS_AV:
      vector_ = &object_of_fid<AddressVector, fid_av>(object);
      vector_use_.emplace(vector_->users);
      return 0;
    case FI_CLASS_CNTR:
      counters_.push_back(&object_of_fid<Counter, fid_cntr>(object));
      return 0;
    case FI_CLASS_EQ:
      return 0;
    case FI_CLASS_CQ: {
      auto& queue = object_of_fid<CompletionQueue, fid_cq>(object);
      if ((flags & (FI_TRANSMIT | FI_SEND)) != 0) {
        transmit_queue_ = &queue;
      }
      if ((flags & FI_RECV) != 0) {
        receive_queue_ = &queue;
      }
      return 0;
    }
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::enable() {
  if (vector_ == nullptr) {
    return -FI_ENOAV;
  }
  if (transmit_queue_ == nullptr || receive_queue_ == nullptr) {
    return -FI_ENOCQ;
  }
  const FabricLink& link = domain_.link();
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::size_t index = claim_slot(segment_.endpoints, pid, link.process() * 4U);
  if (index == kEndpointsMax) {
    return -FI_ENOSPC;
  }
  EndpointSlot& slot = segment_.endpoints[index];
  slot.nic = domain_.nic();
  slot.process = link.process();
  slot.kind = static_cast<std::uint32_t>(&kind_ - link.persona().kinds.data());
  slot.data_takes_receives = data_takes_receives() ? 1 : 0;
  slot.receives.store(0, std::memory_order_relaxed);  // relaxed: published by the generation
  slot.arrivals.empty();
  for (auto& unread : segment_.unread[index]) {
    unread.store(0, std::memory_order_relaxed);  // relaxed: published by the generation
  }
  vector_->attach(segment_.known_peers[index]);
  name_ = {static_cast<std::uint32_t>(index), open_slot(slot)};
  transmitter_.start(name_, *transmit_queue_, counters_);
  receiver_.start(name_, *receive_queue_, *vector_);
  // From here on whoever reads a queue moves this endpoint on.
  if (!transmit_queue_->attach(*this) || !receive_queue_->attach(*this)) {
    transmit_queue_->detach(*this);
    vector_->detach(segment_.known_peers[index]);
    close_slot(slot);
    return -FI_ENOSPC;
  }
  is_enabled_ = true;
  add_to_engine(*this, link);
  return 0;
}

int Endpoint::set_option(int name, const void* value, std::size_t bytes) {
  switch (name) {
    case FI_OPT_FI_HMEM_P2P:
    case kCudaApiPermitted:
    case kSharedMemoryPermitted:
      return set_gpu_option(name, value, bytes);
    case kEfaUseDeviceRdma:
    case kEfaHomogeneousPeers:
      return kind_.address_format == FI_ADDR_EFA ? 0 : -FI_ENOPROTOOPT;
    case kEfaUseUnsolicitedWriteReceive:
      return set_unsolicited(value, bytes);
    case kEfaSendInOrder:
    case kEfaWriteInOrder:  // no such NIC keeps that order
      return kind_.address_format == FI_ADDR_EFA ? -FI_EOPNOTSUPP : -FI_ENOPROTOOPT;
    case kEfaRnrRetry: {
      if (is_enabled_ || bytes != sizeof(std::size_t)) {
        return -FI_EINVAL;
      }
      std::uint64_t retries = 0;
      std::memcpy(&retries, value, sizeof(retries));
      transmitter_.set_receiver_retries(retries);
      return 0;
    }
    default:
      return -FI_ENOPROTOOPT;
  }
}

// prov/efa/src/efa_ep.c; prov/cxi/src/cxip_ep.c and prov/rxm/src/rxm_ep.c, without gdrcopy.
int Endpoint::set_gpu_option(int name, const void* value, std::size_t bytes) const {
  if (name == kCudaApiPermitted && !kind_.takes_p2p_option) {
    const bool is_permitted = bytes == sizeof(bool) && *static_cast<const bool*>(value);
    return is_permitted ? 0 : -FI_EOPNOTSUPP;
  }
  if (!kind_.takes_p2p_option) {
    return -FI_ENOPROTOOPT;
  }
  if (name == FI_OPT_FI_HMEM_P2P && !kind_.has_protocol) {
    int wish = FI_HMEM_P2P_ENABLED;
    std::memcpy(&wish, value, std::min(bytes, sizeof(wish)));
    return wish == FI_HMEM_P2P_DISABLED ? -FI_EOPNOTSUPP : 0;  // efa-direct has no other way
  }
  return 0;
}

// fi_efa(7): efa-direct gives up unsolicited receives only for clients that have buffers instead.
int Endpoint::set_unsolicited(const void* value, std::size_t bytes) {
  if (kind_.address_format != FI_ADDR_EFA) {
    return -FI_ENOPROTOOPT;
  }
  if (bytes != sizeof(bool)) {
    return -FI_EINVAL;
  }
  const bool takes = *static_cast<const bool*>(value);
  if (!takes && kind_.data_may_take_receives && !has_receives_for_data_) {
    return -FI_EOPNOTSUPP;
  }
  takes_unsolicited_ = takes;
  return 0;
}

// prov/efa/src/efa_base_ep.c: the variable and the device decide too, and fi_getinfo has not asked
// the variable.
bool Endpoint::data_takes_receives() const {
  const bool is_unsolicited = takes_unsolicited_ && !has_receives_for_data_ &&
                              domain_.link().settings().unsolicited != 0 &&
                              is_on("FI_EFA_USE_UNSOLICITED_WRITE_RECV", true);
  return kind_.data_may_take_receives && !is_unsolicited;
}

int Endpoint::get_option(int name, void* value, std::size_t* bytes) const {
  const bool knows_sizes = kind_.address_format == FI_ADDR_EFA;
  if (!knows_sizes) {
    return -FI_ENOPROTOOPT;
  }
  const std::size_t inject_rma =
      kind_.injects_writes ? kind_.inject_bytes
                           : static_cast<std::size_t>(domain_.link().settings().inject_write_bytes);
  switch (name) {
    case kMaxMessageBytes:
      return give(value, bytes, kind_.message_bytes_max);
    case kMaxRmaBytes:
      return give(value, bytes, kind_.rma_bytes_max);
    case kInjectMessageBytes:
      return give(value, bytes, kind_.inject_bytes);
    case kInjectRmaBytes:
      return give(value, bytes, inject_rma);
    case kEfaEmulatedRead:
    case kEfaEmulatedWrite:
      return give(value, bytes, false);
    case kEfaEmulatedAtomics:
      return give(value, bytes, true);
    case kEfaRnrRetry:
      return give(value, bytes, static_cast<std::size_t>(transmitter_.receiver_retries()));
    default:
      return -FI_ENOPROTOOPT;
  }
}

int Endpoint::name(void* bytes, std::size_t* size) const {
  const Address address = make_address(domain_.nic(), name_);
  const std::size_t room = *size;
  *size = address.size();
  if (room < address.size()) {
    return -FI_ETOOSMALL;
  }
  std::memcpy(bytes, address.data(), address.size());
  return 0;
}

std::uint64_t Endpoint::progress(By by) {
  constexpr std::uint64_t kBusyNs = 20'000;
  const std::uint64_t now = now_ns();
  if (by == By::Client) {
    client_looked_ns_.store(now, std::memory_order_relaxed);  // relaxed: a hint
  }
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard.owns_lock()) {
    return now + kBusyNs;  // somebody else is at it
  }
  const std::uint64_t stalled = look(domain_.link().process_slot().stalled_until);
  if (stalled > now) {
    return stalled;
  }
  const std::uint64_t due = transmitter_.progress(now);
  if (by == By::Engine && kind_.progress == FI_PROGRESS_MANUAL) {
    if (receiver_.has_arrivals()) {
      receiver_.signal();
    }
    return due;
  }
  receiver_.take_arrivals();
  return due;
}

void Endpoint::leave_to_engine() {
  const std::uint64_t due_ns = progress(By::Client);
  client_looked_ns_.store(0, std::memory_order_relaxed);  // relaxed: the bell below orders it
  const FabricLink& link = domain_.link();
  if (link.is_crowded()) {
    link.ring(link.process());  // the engine finishes its nap, a millisecond at most
  } else if (due_ns == Transmitter::kNever) {
    link.end_nap();  // until an arrival there is nothing to do for it
  } else {
    link.wake_engine();
  }
}

bool Endpoint::client_looked_since(std::uint64_t ns) const {
  return client_looked_ns_.load(std::memory_order_relaxed) >= ns;  // relaxed: a hint
}

bool Endpoint::has_arrivals() const {
  return receiver_.has_arrivals();
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** result, void* context) {
  if (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_RDM) {
    return -FI_EINVAL;
  }
  *result = new Endpoint(object_of<Domain>(domain), info->mode, context);
  return 0;
}

}  // namespace loom
