// Registered memory, address vectors and counters.
//
// Threads: as domain.hpp says.
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdio>
#include <memory>

#include <unistd.h>

#include "loom/src/domain.hpp"
#include "loom/src/endpoint.hpp"
#include "loom/src/fork_support.hpp"
#include "loom/src/gpu_memory.hpp"
#include "loom/src/slots.hpp"

namespace loom {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // relaxed: as KnownPeers says
constexpr std::uint64_t kRemoteAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;

// ---- Memory

struct Wish {
  const void* first;
  std::size_t bytes;
  std::uint64_t access;
  void* context;
  bool is_gpu = false;
};

int register_memory(fid* domain, const Wish& wish, fid_mr** result) {
  auto& owner = object_of_fid<Domain, fid_domain>(domain);
  const Memory::Range range{reinterpret_cast<std::uint64_t>(wish.first), wish.bytes, wish.access,
                            wish.is_gpu};
  auto memory = std::make_unique<Memory>(owner, range, wish.context);
  if (const int error = memory->pin(); error != 0) {
    return error;
  }
  const bool waits_for_enable = (owner.kind().mr_mode & FI_MR_ENDPOINT) != 0;
  if (const int error = waits_for_enable ? 0 : memory->open(); error != 0) {
    return error;
  }
  *result = memory.release();
  return 0;
}

// fi_mr(3) of libfabric 1.20 and later; the headers of this build may be older. The pointer shares
// its place in fi_mr_attr with mr_iov.
constexpr std::uint64_t kDmaBufFlag = std::uint64_t{1} << 40U;

struct DmaBuf {
  int descriptor;
  std::uint64_t offset;
  std::size_t bytes;
  void* base;
};

// prov/cxi/src/cxip_mr.c up to 2.4 does not know the flag, and takes the description for an iovec.
bool misreads_dma_buf(const Domain& domain) {
  return domain.kind().address_format == FI_ADDR_CXI &&
         domain.link().settings().libfabric < version_of(2, 5);
}

int register_attributes(fid* domain,
                        const fi_mr_attr* attributes,
                        std::uint64_t flags,
                        fid_mr** result) {
  const bool is_gpu = attributes->iface == FI_HMEM_CUDA;
  if ((!is_gpu && attributes->iface != FI_HMEM_SYSTEM) || attributes->iov_count != 1) {
    return -FI_ENOSYS;  // another device's
  }
  Wish wish{nullptr, 0, attributes->access, attributes->context, is_gpu};
  if ((flags & kDmaBufFlag) != 0) {
    // The same bytes are reached by the address that the client gives for them.
    const auto& pages = *reinterpret_cast<const DmaBuf*>(attributes->mr_iov);
    if (pages.base == nullptr) {
      return -FI_ENOSYS;
    }
    if (misreads_dma_buf(object_of_fid<Domain, fid_domain>(domain))) {
      wish.first = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(pages.descriptor));
      wish.bytes = pages.offset;
      wish.is_gpu = false;
    } else {
      wish.first = static_cast<const std::byte*>(pages.base) + pages.offset;
      wish.bytes = pages.bytes;
    }
  } else {
    wish.first = attributes->mr_iov->iov_base;
    wish.bytes = attributes->mr_iov->iov_len;
  }
  return register_memory(domain, wish, result);
}

// Keys are the provider's, so wishes for one are not heard; offset and flags have no meaning.
fi_ops_mr kMemoryOps{
    .size = sizeof(fi_ops_mr),
    .reg =
        [](fid* domain,
           const void* first,
           std::size_t bytes,
           std::uint64_t access,
           std::uint64_t,
           std::uint64_t,
           std::uint64_t,
           fid_mr** result,
           void* context) {
          return register_memory(domain, {first, bytes, access, context}, result);
        },
    .regv =
        [](fid* domain,
           const iovec* pieces,
           std::size_t count,
           std::uint64_t access,
           std::uint64_t,
           std::uint64_t,
           std::uint64_t,
           fid_mr** result,
           void* context) {
          return count != 1
                     ? -FI_EINVAL
                     : register_memory(domain, {pieces->iov_base, pieces->iov_len, access, context},
                                       result);
        },
    .regattr = register_attributes};

int control_memory(fid* handle, int command, void* /*argument*/) {
  return command == FI_ENABLE ? object_of_fid<Memory, fid_mr>(handle).open() : -FI_ENOSYS;
}

int bind_memory(fid* handle, fid* object, std::uint64_t /*flags*/) {
  if (object->fclass == FI_CLASS_EP) {
    object_of_fid<Memory, fid_mr>(handle).bind(object_of_fid<Endpoint, fid_ep>(object).users);
  }
  return 0;
}

fi_ops memory_fid_ops() {
  fi_ops ops = closing_ops<Memory, fid_mr>();
  ops.control = control_memory;
  ops.bind = bind_memory;
  return ops;
}

// ---- Address vector

int insert_addresses(fid_av* vector,
                     const void* addresses,
                     std::size_t count,
                     fi_addr_t* result,
                     std::uint64_t /*flags*/,
                     void* /*context*/) {
  int inserted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* bytes = static_cast<const std::byte*>(addresses) + i * sizeof(Address);
    const fi_addr_t address = object_of<AddressVector>(vector).insert(bytes);
    inserted += address == FI_ADDR_NOTAVAIL ? 0 : 1;
    if (result != nullptr) {
      result[i] = address;
    }
  }
  return inserted;
}

int remove_addresses(fid_av* vector,
                     fi_addr_t* addresses,
                     std::size_t count,
                     std::uint64_t /*flags*/) {
  bool is_known = true;
  for (std::size_t i = 0; i < count; ++i) {
    is_known = object_of<AddressVector>(vector).remove(addresses[i]) && is_known;
  }
  return is_known ? 0 : -FI_EINVAL;
}

int look_up(fid_av* vector, fi_addr_t address, void* bytes, std::size_t* size) {
  const auto name = object_of<AddressVector>(vector).find(address);
  if (!name) {
    return -FI_EINVAL;
  }
  const Address whole = make_address(0, *name);
  std::memcpy(bytes, whole.data(), std::min(*size, whole.size()));
  *size = whole.size();
  return 0;
}

const char* address_text(fid_av* /*vector*/, const void* bytes, char* text, std::size_t* size) {
  const auto name = parse_address(bytes);
  const int length = std::snprintf(text, *size, "loom://%u.%u", name ? name->slot : 0,
                                   name ? name->generation : 0);
  *size = static_cast<std::size_t>(length) + 1;
  return text;
}

fi_ops_av kVectorOps{.size = sizeof(fi_ops_av),
                     .insert = insert_addresses,
                     .insertsvc = kNotThere,
                     .insertsym = kNotThere,
                     .remove = remove_addresses,
                     .lookup = look_up,
                     .straddr = address_text,
                     .av_set = kNotThere};

fi_ops vector_fid_ops() {
  fi_ops ops = closing_ops<AddressVector, fid_av>();
  ops.bind = [](fid*, fid*, std::uint64_t) { return 0; };
  return ops;
}

// ---- Counter. Who reads one that has grown may read what the operations have written: acquire.
// The program's own changes order nothing: relaxed.

int wait_for_counter(fid_cntr* counter, std::uint64_t threshold, int timeout_ms) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  constexpr useconds_t kNapUs = 20;
  const std::uint64_t start = now_ns();
  const auto& mine = object_of<Counter>(counter);
  // SYNC counted: the data after the count.
  while (mine.value.load(std::memory_order_acquire) < threshold) {
    if (mine.errors.load(std::memory_order_relaxed) > 0) {
      return -FI_EAVAIL;
    }
    if (timeout_ms >= 0 &&
        now_ns() - start > static_cast<std::uint64_t>(timeout_ms) * kMillisecond) {
      return -FI_ETIMEDOUT;
    }
    ::usleep(kNapUs);
  }
  return 0;
}

fi_ops_cntr kCounterOps{
    .size = sizeof(fi_ops_cntr),
    // SYNC counted: as above.
    .read = [](fid_cntr* c) { return object_of<Counter>(c).value.load(std::memory_order_acquire); },
    .readerr =
        [](fid_cntr* c) { return object_of<Counter>(c).errors.load(std::memory_order_relaxed); },
    .add =
        [](fid_cntr* c, std::uint64_t n) {
          object_of<Counter>(c).value.fetch_add(n, std::memory_order_relaxed);
          return 0;
        },
    .set =
        [](fid_cntr* c, std::uint64_t n) {
          object_of<Counter>(c).value.store(n, std::memory_order_relaxed);
          return 0;
        },
    .wait = wait_for_counter,
    .adderr =
        [](fid_cntr* c, std::uint64_t n) {
          object_of<Counter>(c).errors.fetch_add(n, std::memory_order_relaxed);
          return 0;
        },
    .seterr =
        [](fid_cntr* c, std::uint64_t n) {
          object_of<Counter>(c).errors.store(n, std::memory_order_relaxed);
          return 0;
        }};

}  // namespace

AddressVector::AddressVector(Domain& domain, void* context) : fid_av{}, domain_(domain) {
  static fi_ops fid_ops = vector_fid_ops();
  fid.fclass = FI_CLASS_AV;
  fid.context = context;
  fid.ops = &fid_ops;
  ops = &kVectorOps;
}

fi_addr_t AddressVector::insert(const void* bytes) {
  const auto name = parse_address(bytes);
  if (!name || name->slot >= kEndpointsMax) {
    return FI_ADDR_NOTAVAIL;
  }
  const std::lock_guard guard(lock_);
  names_.push_back(name);
  by_slot_[name->slot] = names_.size() - 1;
  for (KnownPeers* known : known_) {
    (*known)[name->slot].store(name->generation, kRelaxed);
  }
  return names_.size() - 1;
}

void AddressVector::attach(KnownPeers& known) {
  const std::lock_guard guard(lock_);
  for (auto& peer : known) {
    peer.store(0, kRelaxed);
  }
  for (const auto& [slot, newest] : by_slot_) {
    known[slot].store(names_[newest]->generation, kRelaxed);
  }
  known_.push_back(&known);
}

void AddressVector::detach(KnownPeers& known) {
  const std::lock_guard guard(lock_);
  std::erase(known_, &known);
}

bool AddressVector::remove(fi_addr_t address) {
  const std::lock_guard guard(lock_);
  if (address >= names_.size() || !names_[address]) {
    return false;
  }
  const auto newest = by_slot_.find(names_[address]->slot);
  if (newest != by_slot_.end() && newest->second == address) {
    for (KnownPeers* known : known_) {
      (*known)[newest->first].store(0, kRelaxed);
    }
    by_slot_.erase(newest);
  }
  names_[address].reset();
  return true;
}

std::optional<EndpointName> AddressVector::find(fi_addr_t address) {
  const std::lock_guard guard(lock_);
  return address < names_.size() ? names_[address] : std::nullopt;
}

fi_addr_t AddressVector::find(EndpointName name) {
  const std::lock_guard guard(lock_);
  const auto found = by_slot_.find(name.slot);
  const bool is_same = found != by_slot_.end() && names_[found->second] == name;
  return is_same ? found->second : FI_ADDR_NOTAVAIL;
}

Memory::Memory(Domain& domain, Range range, void* context)
    : fid_mr{}, domain_(domain), range_(range) {
  static fi_ops fid_ops = memory_fid_ops();
  fid.fclass = FI_CLASS_MR;
  fid.context = context;
  fid.ops = &fid_ops;
  mem_desc = this;
  key = FI_KEY_NOTAVAIL;
}

Memory::~Memory() {
  if (is_kept_) {
    give_to_children(range_.base, range_.bytes);
  }
  if (slot_) {
    KeySlot& slot = domain_.link().segment().keys[*slot_];
    const GpuOffer offer = slot.gpu;
    close_slot(slot);
    if (offer.share != GpuShare::None) {
      withdraw_gpu_memory(offer);
    }
  }
}

int Memory::pin() {
  const bool is_host = !range_.is_gpu && range_.bytes > 0;
  if (!is_host || !keeps_from_children(domain_.kind(), domain_.link().settings())) {
    return 0;
  }
  const int error = keep_from_children(range_.base, range_.bytes);
  is_kept_ = error == 0;
  return error;
}

int Memory::open() {
  if ((range_.access & kRemoteAccess) == 0 && range_.access != 0) {
    key = 0;  // nobody needs one
    return 0;
  }
  GpuOffer offer;
  if (range_.is_gpu) {
    if (const int error = offer_gpu_memory(range_.base, range_.bytes, offer); error != 0) {
      return -error;
    }
  }
  static std::atomic<std::uint32_t> next{0};
  Segment& segment = domain_.link().segment();
  // relaxed: only spreads the search
  const std::size_t from =
      domain_.link().process() * 128U + next.fetch_add(1, std::memory_order_relaxed);
  const std::size_t index = claim_slot(segment.keys, static_cast<std::uint32_t>(::getpid()), from);
  if (index == kKeysMax) {
    withdraw_gpu_memory(offer);
    return -FI_ENOSPC;
  }
  KeySlot& slot = segment.keys[index];
  slot.nic = domain_.nic();
  slot.base = range_.base;
  slot.bytes = range_.bytes;
  slot.gpu = offer;
  slot.access = range_.access == 0 ? kRemoteAccess : range_.access;  // 0: all of what the caps say
  key = make_key(index, open_slot(slot));
  slot_ = index;
  return 0;
}

bool is_gpu_memory(void* const* descriptors) {
  return descriptors != nullptr && *descriptors != nullptr &&
         static_cast<const Memory*>(*descriptors)->range().is_gpu;
}

Counter::Counter(Domain& domain, void* context) : fid_cntr{}, use_(domain.users) {
  static fi_ops fid_ops = closing_ops<Counter, fid_cntr>();
  fid.fclass = FI_CLASS_CNTR;
  fid.context = context;
  fid.ops = &fid_ops;
  ops = &kCounterOps;
}

fi_ops_mr* memory_ops() {
  return &kMemoryOps;
}

int open_vector(fid_domain* domain, fi_av_attr* attributes, fid_av** result, void* context) {
  if (attributes->type == FI_AV_MAP) {
    attributes->type = FI_AV_TABLE;
  }
  *result = new AddressVector(object_of<Domain>(domain), context);
  return 0;
}

int open_counter(fid_domain* domain,
                 fi_cntr_attr* /*attributes*/,
                 fid_cntr** result,
                 void* context) {
  *result = new Counter(object_of<Domain>(domain), context);
  return 0;
}

}  // namespace loom
