#include "src/rma/remote_operations.hpp"

#include <fmt/format.h>

namespace weft::rma {
namespace {

using transport::Operation;
using transport::OperationCounter;
using transport::OperationKind;

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

}  // namespace

Status RemoteOperations::post(Context& context, Operation& operation, Blocking blocking) {
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

Status RemoteOperations::post_and_wait(Operation& operation) {
  OperationCounter counter;
  operation.counter = &counter;
  if (const Status status = submit(operation); status != Status::Ok) {
    return status;
  }
  routes_.to(operation.peer).flush(operation.peer);
  // The wait does not check this peer for liveness: the transport guarantees that the counter
  // advances even if the peer is lost, and until then the counter and the buffers belong to the
  // transport.
  const Status status = wait_idle(counter, operation.peer, name_of(operation.kind));
  return status == Status::Ok && counter.has_failed() ? failure_of(operation.peer) : status;
}

// An operation fails if its peer is lost, or if its local memory is invalid or cannot be registered
// with the NIC.
Status RemoteOperations::failure_of(Pe peer) const {
  return routes_.peer_status(peer) != Status::Ok ? Status::PeerLost : Status::Internal;
}

Status RemoteOperations::submit(const Operation& operation) {
  transport::Transport& transport = routes_.to(operation.peer);
  Status status = transport.post(operation);
  if (status != Status::Again) {
    return status;
  }
  const Status waited = waiter_.wait_for_transfer(
      [&] {
        status = transport.post(operation);
        return status != Status::Again;
      },
      [&] {
        return fmt::format("waiting for room to send {} to PE {}", name_of(operation.kind),
                           operation.peer.value);
      },
      operation.peer);
  return waited == Status::Ok ? status : waited;
}

Status RemoteOperations::wait_idle(OperationCounter& counter, Pe peer, std::string_view what) {
  if (counter.is_idle()) {
    return Status::Ok;
  }
  return waiter_.wait_for_transfer(
      [&] { return counter.is_idle(); },
      [&] { return fmt::format("waiting for PE {} in {}", peer.value, what); }, peer);
}

Status RemoteOperations::quiet(Context& context) {
  for (std::uint32_t pe = 0; pe < context.pe_count(); ++pe) {
    if (!context.counter(Pe(pe)).is_idle()) {
      routes_.to(Pe(pe)).flush(Pe(pe));
    }
  }
  Status result = Status::Ok;
  for (std::uint32_t pe = 0; pe < context.pe_count(); ++pe) {
    const Status status = await_counter(context, Pe(pe));
    result = status != Status::Ok ? status : result;
  }
  return result;
}

Status RemoteOperations::quiet(Context& context, Pe peer) {
  if (!context.counter(peer).is_idle()) {
    routes_.to(peer).flush(peer);
  }
  return await_counter(context, peer);
}

Status RemoteOperations::await_counter(Context& context, Pe peer) {
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

}  // namespace weft::rma
