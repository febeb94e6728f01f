#include "src/rma/rma.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "src/base/units.hpp"

namespace weft::rma {
namespace {

using transport::Operation;
using transport::OperationCounter;
using transport::OperationKind;

Operation atomic_operation(const heap::Place& word, const Atomic& atomic, Pe peer) {
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

transport::AtomicUpdate update_of(const Signal& signal) {
  return {.code = signal.code, .element_bytes = 8, .word = signal.word, .operand = signal.value};
}

}  // namespace

Rma::Rma(heap::Heap& heap, const transport::Routes& routes, Waiter& waiter)
    : mapped_peers_(heap),
      doorbells_(heap),
      heap_(heap),
      routes_(routes),
      remote_(routes, waiter),
      waiter_(waiter) {}

Status Rma::put(Context& context,
                const heap::Place& dest,
                std::span<const std::byte> source,
                Pe peer,
                Blocking blocking) {
  if (source.empty()) {
    return Status::Ok;
  }
  Operation operation{.kind = OperationKind::Put,
                      .peer = peer,
                      .remote = dest,
                      .local = const_cast<std::byte*>(source.data()),
                      .bytes = source.size(),
                      .update = {}};
  return post(context, operation, blocking);
}

Status Rma::get(Context& context,
                std::span<std::byte> dest,
                const heap::Place& source,
                Pe peer,
                Blocking blocking) {
  if (dest.empty()) {
    return Status::Ok;
  }
  Operation operation{.kind = OperationKind::Get,
                      .peer = peer,
                      .remote = source,
                      .local = dest.data(),
                      .bytes = dest.size(),
                      .update = {}};
  const Status status = post(context, operation, blocking);
  if (blocking == Blocking::Yes) {
    ordering_fence();  // as transport::fetch_bytes
  }
  return status;
}

// If only the data is mapped, and the word is not, two transports would have to agree on an order.
// So the data is put first, and the signal follows on its own.
Status Rma::put_signal(Context& context,
                       const heap::Place& dest,
                       std::span<const std::byte> source,
                       const Signal& signal,
                       Pe peer,
                       Blocking blocking) {
  if (source.empty()) {
    return this->signal(context, signal, peer);
  }
  const bool is_split = dest.mapped != nullptr && signal.word.mapped == nullptr;
  if (is_split) {
    const Status status = put(context, dest, source, peer, blocking);
    return status == Status::Ok ? this->signal(context, signal, peer) : status;
  }
  Operation operation{.kind = OperationKind::PutSignal,
                      .peer = peer,
                      .remote = dest,
                      .local = const_cast<std::byte*>(source.data()),
                      .bytes = source.size(),
                      .update = update_of(signal)};
  return post(context, operation, blocking);
}

// What is mapped here is stored before the rest is posted, so a signal that goes with the rest
// follows both.
Status Rma::putv(Context& context,
                 std::span<transport::GatherSegment> segments,
                 const Signal* signal,
                 Pe peer,
                 Blocking blocking) {
  std::size_t bytes = 0;
  for (const transport::GatherSegment& segment : segments) {
    if (segment.remote.mapped == nullptr) {
      bytes += segment.bytes;
      continue;
    }
    const Status status =
        put(context, segment.remote, {static_cast<const std::byte*>(segment.local), segment.bytes},
            peer, blocking);
    if (status != Status::Ok) {
      return status;
    }
  }
  const auto stored = std::ranges::remove_if(
      segments, [](const heap::Place& place) { return place.mapped != nullptr; },
      &transport::GatherSegment::remote);
  const std::span elsewhere(segments.begin(), stored.begin());
  if (elsewhere.empty()) {
    return signal == nullptr ? Status::Ok : this->signal(context, *signal, peer);
  }
  const bool is_one =
      routes_.to(peer).gathers() && (signal == nullptr || signal->word.mapped == nullptr);
  if (!is_one) {
    return post_one_by_one(context, elsewhere, signal, peer, blocking);
  }
  Operation operation{.kind = signal == nullptr ? OperationKind::Put : OperationKind::PutSignal,
                      .peer = peer,
                      .remote = elsewhere.front().remote,
                      .local = elsewhere.front().local,
                      .bytes = bytes,
                      .update = {}};
  if (signal != nullptr) {
    operation.update = update_of(*signal);
  }
  if (elsewhere.size() > 1) {
    operation.segments = elsewhere;
  }
  return post(context, operation, blocking);
}

Status Rma::post_one_by_one(Context& context,
                            std::span<const transport::GatherSegment> segments,
                            const Signal* signal,
                            Pe peer,
                            Blocking blocking) {
  for (const transport::GatherSegment& segment : segments) {
    Operation operation{.kind = OperationKind::Put,
                        .peer = peer,
                        .remote = segment.remote,
                        .local = segment.local,
                        .bytes = segment.bytes,
                        .update = {}};
    const Status status = post(context, operation, Blocking::No);
    if (status != Status::Ok) {
      return status;
    }
  }
  if (signal == nullptr && blocking == Blocking::No) {
    return Status::Ok;
  }
  const Status status = quiet(context, peer);
  return status == Status::Ok && signal != nullptr ? this->signal(context, *signal, peer) : status;
}

Status Rma::signal(Context& context, const Signal& signal, Pe peer) {
  return atomic(context, signal.word, {.code = signal.code, .operand = signal.value}, peer,
                nullptr);
}

Status Rma::atomic(Context& context,
                   const heap::Place& word,
                   const Atomic& atomic,
                   Pe peer,
                   std::uint64_t* result) {
  Operation operation = atomic_operation(word, atomic, peer);
  operation.result = result;
  return post(context, operation, result != nullptr ? Blocking::Yes : Blocking::No);
}

Status Rma::atomic_fetch_nbi(
    Context& context, const heap::Place& word, const Atomic& atomic, Pe peer, void* result) {
  if (atomic.element_bytes == 8) {
    Operation operation = atomic_operation(word, atomic, peer);
    operation.result = static_cast<std::uint64_t*>(result);
    return post(context, operation, Blocking::No);
  }
  std::uint64_t old = 0;
  const Status status = this->atomic(context, word, atomic, peer, &old);
  if (status == Status::Ok) {
    std::memcpy(result, &old, atomic.element_bytes);  // the low bytes: hosts are little-endian
  }
  return status;
}

Status Rma::quiet(Context& context) {
  // For mapped peers quiet is a full fence: earlier stores are globally visible before later loads.
  // The copy that issued non-temporal stores has already fenced them.
  full_fence();
  return context.used_transport() ? remote_.quiet(context) : Status::Ok;
}

Status Rma::quiet(Context& context, Pe peer) {
  full_fence();  // as above
  return context.used_transport() ? remote_.quiet(context, peer) : Status::Ok;
}

Status Rma::fence(Context& context) {
  ordering_fence();
  // The fabric may reorder any two operations, so ordering towards a peer with outstanding
  // operations means waiting for them. A peer without outstanding operations costs one load.
  return context.used_transport() ? remote_.quiet(context) : Status::Ok;
}

Status Rma::post(Context& context, Operation& operation, Blocking blocking) {
  if (!transport::MappedTransport::reaches(operation)) {
    const Status status = remote_.post(context, operation, blocking);
    doorbells_.ring_after(operation);
    return status;
  }
  OperationCounter counter;
  operation.counter = &counter;
  const Status status = mapped_.post(operation);
  doorbells_.ring_after(operation);
  return status;
}

std::string Rma::describe_invalid(const void* address, std::size_t bytes, Pe peer) const {
  if (peer.value >= pe_count()) {
    return fmt::format("there is no PE {}; PEs are 0 to {}", static_cast<std::int32_t>(peer.value),
                       pe_count() - 1);
  }
  const bool has_regions = !heap_.regions().all().empty();
  const auto region = heap_.region_of(address);
  if (!region) {
    return fmt::format(
        "address {} is not symmetric: it lies outside this PE's heap, {} to {}{}; use memory from "
        "weft_malloc{}",
        address, static_cast<const void*>(heap_.user()),
        static_cast<const void*>(heap_.user() + heap_.user_bytes()),
        has_regions ? ", and is not a global variable of the program" : "",
        has_regions ? "" : " (global variables are symmetric with WEFT_SYMMETRIC_GLOBALS=yes)");
  }
  const bool is_heap = region->value == 0;
  const std::uint64_t bytes_left =
      is_heap ? heap_.size() - heap_.offset_of(address)
              : heap_.regions()[*region].bytes - heap_.regions()[*region].offset_of(address);
  return fmt::format("{} bytes from address {} reach beyond the end of {}, of which {} follow",
                     bytes, address, is_heap ? "the heap" : heap_.regions()[*region].name,
                     format_bytes(bytes_left));
}

}  // namespace weft::rma
