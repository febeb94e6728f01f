// The buffers: those that the client has posted, and those of the provider for each connection.
//
// Threads: as the header says.
#include "loom/src/targets.hpp"

#include "loom/src/slots.hpp"

namespace loom {
namespace {

bool is_told(const Operation& operation) {
  return operation.kind == OperationKind::Send ||
         (operation.kind == OperationKind::Write && operation.has_data);
}

}  // namespace

Targets::Targets(const Domain& domain) : domain_(domain), segment_(domain.link().segment()) {}

EndpointSlot& Targets::of(const Operation& operation) const {
  return segment_.endpoints[operation.target.slot];
}

bool Targets::are_open(const Operation& operation) const {
  return is_open(of(operation), operation.target.generation);
}

bool Targets::are_alive(const Operation& operation) const {
  return is_alive(look(of(operation).pid));
}

bool Targets::are_foreign(const Operation& operation) const {
  return of(operation).kind != segment_.endpoints[name_.slot].kind;
}

bool Targets::refuse(const Operation& operation) const {
  if (domain_.link().settings().known_peers == 0 || !domain_.kind().refuses_unknown ||
      operation.kind == OperationKind::Send) {
    return false;
  }
  const KnownPeers& known = segment_.known_peers[operation.target.slot];
  return look(known[name_.slot]) != name_.generation;
}

bool Targets::give_receive(Operation& operation) const {
  if (!is_told(operation) || are_foreign(operation)) {
    return true;
  }
  if (take_posted(operation) && take_of_provider(operation)) {
    return true;
  }
  count_up(segment_.nics[operation.target_nic].counters.rx_drops, 1);
  return false;
}

// With one it waits for room.
bool Targets::take_posted(Operation& operation) const {
  EndpointSlot& target = of(operation);
  const bool needs_one = operation.kind == OperationKind::Send || target.data_takes_receives != 0;
  if (!needs_one || operation.has_receive) {
    return true;
  }
  std::atomic<std::uint32_t>& receives = target.receives;
  std::uint32_t left = receives.load(std::memory_order_relaxed);  // relaxed: the exchange decides
  do {
    if (left == 0) {
      return false;
    }
    // SYNC receive-posted: the promise before what is written for it.
  } while (!receives.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                           std::memory_order_relaxed));
  operation.has_receive = true;
  return true;
}

// Rxm posts so many receives for each connection, and posts them again when its client makes
// progress.
bool Targets::take_of_provider(Operation& operation) const {
  const std::uint32_t most = domain_.kind().connection_receives;
  if (most == 0 || operation.has_connection) {
    return true;
  }
  auto& unread = segment_.unread[operation.target.slot][name_.slot];
  if (look(unread) >= most) {
    return false;
  }
  count_up(unread, 1);
  operation.has_connection = true;
  return true;
}

}  // namespace loom
