#include "src/rma/rma.hpp"

#include <cstring>

#include <fmt/format.h>

#include "src/base/units.hpp"

namespace weft::rma {
namespace {

using transport::Operation;
using transport::OperationCounter;
using transport::OperationKind;

Operation atomic_operation(transport::RemoteAddress word, const Atomic& atomic, Pe peer) {
  return {.kind = OperationKind::Atomic,
          .peer = peer,
          .remote = word,
          .bytes = atomic.element_bytes,
          .update = {.code = atomic.code,
                     .element_bytes = atomic.element_bytes,
                     .word = word,
                     .operand = atomic.operand,
                     .compare = atomic.compare}};
}

std::string_view name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::Put:
      return "put";
    case OperationKind::Get:
      return "get";
    case OperationKind::PutSignal:
      return "put_signal";
    case OperationKind::Atomic:
      return "an atomic";
  }
  return "an operation";
}

void store_result(void* result, std::uint64_t old, std::uint8_t element_bytes) {
  if (element_bytes == 4) {
    const auto narrow = static_cast<std::uint32_t>(old);
    std::memcpy(result, &narrow, sizeof narrow);
  } else {
    std::memcpy(result, &old, sizeof old);
  }
}

}  // namespace

Rma::Rma(heap::Heap& heap, const transport::Routes& routes, Waiter& waiter)
    : heap_(heap),
      mapped_(heap),
      routes_(routes),
      waiter_(waiter),
      user_(heap.user()),
      user_bytes_(heap.user_bytes()),
      pe_count_(heap.pe_count()),
      has_regions_(!heap.regions().empty()),
      doorbells_(heap.pe_count(), nullptr),
      peers_(heap.pe_count(), nullptr) {
  for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
    if (std::byte* base = heap.mapped_base(Pe(pe)); base != nullptr) {
      peers_[pe] = base + (heap.user() - heap.base());
      doorbells_[pe] = reinterpret_cast<WordBell*>(base);
    }
  }
}

WordPlace place_in_heap(const heap::Heap& heap, transport::RemoteAddress word, Pe owner) {
  const std::uint64_t offset = word.offset.value;
  if (word.region != RegionIndex(0)) {
    return place_of_user_word(offset);
  }
  return offset < heap.control_bytes() ? place_of_control_word(offset, owner)
                                       : place_of_user_word(offset - heap.control_bytes());
}

Status Rma::put(
    Context& context, void* dest, std::span<const std::byte> source, Pe peer, Blocking blocking) {
  if (source.empty()) {
    return Status::Ok;
  }
  return post(context,
              {.kind = OperationKind::Put,
               .peer = peer,
               .remote = remote_address(dest),
               .local = const_cast<std::byte*>(source.data()),
               .bytes = source.size(),
               .update = {}},
              blocking);
}

Status Rma::get(
    Context& context, std::span<std::byte> dest, const void* source, Pe peer, Blocking blocking) {
  if (dest.empty()) {
    return Status::Ok;
  }
  return post(context,
              {.kind = OperationKind::Get,
               .peer = peer,
               .remote = remote_address(source),
               .local = dest.data(),
               .bytes = dest.size(),
               .update = {}},
              blocking);
}

// If only the data is mapped, and the word is not, two transports would have to agree on an order. So the data is put
// first, and the signal follows on its own.
Status Rma::put_signal(Context& context,
                       void* dest,
                       std::span<const std::byte> source,
                       const Signal& signal,
                       Pe peer,
                       Blocking blocking) {
  if (source.empty()) {
    return this->signal(context, signal, peer);
  }
  const bool is_split = view(dest, peer) != nullptr && view(signal.word, peer) == nullptr;
  if (is_split) {
    const Status status = put(context, dest, source, peer, blocking);
    return status == Status::Ok ? this->signal(context, signal, peer) : status;
  }
  return post(context,
              {.kind = OperationKind::PutSignal,
               .peer = peer,
               .remote = remote_address(dest),
               .local = const_cast<std::byte*>(source.data()),
               .bytes = source.size(),
               .update = {.code = signal.code,
                          .element_bytes = 8,
                          .word = remote_address(signal.word),
                          .operand = signal.value}},
              blocking);
}

Status Rma::signal(Context& context, const Signal& signal, Pe peer) {
  return atomic(context, signal.word, {.code = signal.code, .operand = signal.value}, peer,
                nullptr);
}

Status Rma::atomic(
    Context& context, void* word, const Atomic& atomic, Pe peer, std::uint64_t* result) {
  Operation operation = atomic_operation(remote_address(word), atomic, peer);
  operation.result = result;
  return post(context, operation, result != nullptr ? Blocking::Yes : Blocking::No);
}

Status Rma::atomic_fetch_nbi(
    Context& context, void* word, const Atomic& atomic, Pe peer, void* result) {
  if (atomic.element_bytes == 8) {
    Operation operation = atomic_operation(remote_address(word), atomic, peer);
    operation.result = static_cast<std::uint64_t*>(result);
    return post(context, operation, Blocking::No);
  }
  std::uint64_t old = 0;
  const Status status = this->atomic(context, word, atomic, peer, &old);
  if (status == Status::Ok) {
    store_result(result, old, atomic.element_bytes);
  }
  return status;
}

Status Rma::quiet(Context& context) {
  // For mapped peers quiet is a full fence: earlier stores are globally visible before later loads. The copy that
  // issued non-temporal stores has already fenced them.
  full_fence();
  return context.used_transport() ? quiet_remote(context) : Status::Ok;
}

Status Rma::quiet(Context& context, Pe peer) {
  full_fence();  // as above
  if (!context.used_transport()) {
    return Status::Ok;
  }
  if (!context.counter(peer).is_idle()) {
    routes_.to(peer).flush(peer);
  }
  return await_counter(context, peer);
}

Status Rma::fence(Context& context) {
  ordering_fence();
  // The fabric may reorder any two operations, so ordering towards a peer with outstanding operations means waiting
  // for them. A peer without outstanding operations costs one load.
  return context.used_transport() ? quiet_remote(context) : Status::Ok;
}

Status Rma::quiet_remote(Context& context) {
  for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
    if (!context.counter(Pe(pe)).is_idle()) {
      routes_.to(Pe(pe)).flush(Pe(pe));
    }
  }
  Status result = Status::Ok;
  for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
    const Status status = await_counter(context, Pe(pe));
    result = status != Status::Ok ? status : result;
  }
  return result;
}

Status Rma::await_counter(Context& context, Pe peer) {
  OperationCounter& counter = context.counter(peer);
  const Status status = wait_idle(counter, peer, "quiet");
  if (status == Status::Ok && !counter.has_failed()) {
    return Status::Ok;
  }
  const Status result = failure_of(peer);
  // A lost peer stays lost; a rejected operation is reported once.
  if (result != Status::PeerLost) {
    counter.forget_failure();
  }
  return result;
}

Status Rma::post(Context& context, Operation operation, Blocking blocking) {
  if (!mapped_.reaches(operation)) {
    const Status status = post_remote(context, operation, blocking);
    ring_after(operation);
    return status;
  }
  OperationCounter counter;
  operation.counter = &counter;
  const Status status = mapped_.post(operation);
  ring_after(operation);
  return status;
}

// A PE of this node may sleep until the word changes, also where another transport than the mapped one reached it.
void Rma::ring_after(const Operation& operation) {
  WordBell* const bell = doorbells_[operation.peer.value];
  if (bell == nullptr) {
    return;
  }
  if (operation.kind == OperationKind::PutSignal || operation.kind == OperationKind::Atomic) {
    ring_unfenced(*bell, place_in_heap(heap_, operation.update.word, operation.peer));
  } else if (operation.kind == OperationKind::Put && operation.bytes <= kWordBytesMax) {
    ring_for_word(*bell, place_in_heap(heap_, operation.remote, operation.peer));
  }
}

Status Rma::post_remote(Context& context, Operation operation, Blocking blocking) {
  const bool is_write =
      operation.kind == OperationKind::Put || operation.kind == OperationKind::PutSignal;
  if (blocking == Blocking::Yes && (!is_write || operation.bytes > kCopiedBytesMax)) {
    return post_and_wait(operation);
  }
  operation.copy_source = blocking == Blocking::Yes;
  operation.counter = &context.counter(operation.peer);
  context.mark_transport_used();
  return submit(operation);
}

Status Rma::post_and_wait(Operation operation) {
  OperationCounter counter;
  operation.counter = &counter;
  if (const Status status = submit(operation); status != Status::Ok) {
    return status;
  }
  routes_.to(operation.peer).flush(operation.peer);
  // The wait does not check this peer for liveness: the transport guarantees that the counter advances even if the
  // peer is lost, and until then the counter and the buffers belong to the transport.
  const Status status = wait_idle(counter, operation.peer, name_of(operation.kind));
  return status == Status::Ok && counter.has_failed() ? failure_of(operation.peer) : status;
}

// An operation fails if its peer is lost, or if its local memory is invalid or cannot be registered with the NIC.
Status Rma::failure_of(Pe peer) const {
  return routes_.peer_status(peer) != Status::Ok ? Status::PeerLost : Status::Internal;
}

Status Rma::submit(const Operation& operation) {
  transport::Transport& transport = routes_.to(operation.peer);
  Status status = transport.post(operation);
  if (status != Status::Again) {
    return status;
  }
  const Status waited = waiter_.wait(
      [&] {
        status = transport.post(operation);
        return status != Status::Again;
      },
      [&] {
        return fmt::format("waiting for room to send {} to PE {}", name_of(operation.kind),
                           operation.peer.value);
      },
      {});
  return waited == Status::Ok ? status : waited;
}

Status Rma::wait_idle(OperationCounter& counter, Pe peer, std::string_view what) {
  if (counter.is_idle()) {
    return Status::Ok;
  }
  return waiter_.wait([&] { return counter.is_idle(); },
                      [&] { return fmt::format("waiting for PE {} in {}", peer.value, what); }, {});
}

std::string Rma::describe_invalid(const void* address, std::size_t bytes, Pe peer) const {
  if (peer.value >= pe_count_) {
    return fmt::format("there is no PE {}; PEs are 0 to {}", static_cast<std::int32_t>(peer.value),
                       pe_count_ - 1);
  }
  const auto place = heap_.place_of(address);
  if (!place) {
    return fmt::format(
        "address {} is not symmetric: it lies outside this PE's heap, {} to {}{}; use memory from "
        "weft_malloc{}",
        address, static_cast<const void*>(heap_.user()),
        static_cast<const void*>(heap_.user() + heap_.user_bytes()),
        has_regions_ ? ", and is not a global variable of the program" : "",
        has_regions_ ? "" : " (global variables are symmetric with WEFT_SYMMETRIC_GLOBALS=yes)");
  }
  return fmt::format(
      "{} bytes from address {} reach beyond the end of {}, of which {} follow", bytes, address,
      place->region.value == 0 ? "the heap" : heap_.regions()[place->region.value - 1].name,
      format_bytes(place->bytes_left));
}

}  // namespace weft::rma
