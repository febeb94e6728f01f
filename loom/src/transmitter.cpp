// How an operation moves from stage to stage.
//
// Threads: under its endpoint's lock.
#include "loom/src/transmitter.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <span>
#include <utility>

#include "loom/src/shreds.hpp"
#include "loom/src/slots.hpp"

namespace loom {
namespace {

constexpr std::size_t kDepartingLooked = 64;  // of those that wait: a blocked target holds up few
constexpr std::uint64_t kRetryNs = 20'000;    // for a ring without room
constexpr std::uint64_t kGpuLookNs = 2'000;   // at a copy that a GPU makes
constexpr std::uint64_t kReceiverRetryNs = 100'000;  // for a receiver without a buffer
constexpr std::uint32_t kRetriesWithoutEnd = 7;
constexpr std::uint64_t kMillion = 1'000'000;

std::uint64_t completion_flags(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::Send:
      return FI_SEND | FI_MSG;
    case OperationKind::Write:
      return FI_WRITE | FI_RMA;
    case OperationKind::Read:
      return FI_READ | FI_RMA;
    case OperationKind::Atomic:
      return FI_ATOMIC | (operation.atomic.reads_only() ? FI_READ : FI_WRITE);
  }
  return 0;
}

void count(const Operation& operation, NicCounters& mine, NicCounters& other) {
  switch (operation.kind) {
    case OperationKind::Send:
      count_up(mine.send_bytes, operation.bytes);
      count_up(mine.send_wrs, 1);
      count_up(other.recv_bytes, operation.bytes);
      count_up(other.recv_wrs, 1);
      break;
    case OperationKind::Atomic:  // as writes: EFA's driver has no other counters
    case OperationKind::Write:
      count_up(mine.rdma_write_bytes, operation.bytes);
      count_up(mine.rdma_write_wrs, 1);
      count_up(other.rdma_write_recv_bytes, operation.bytes);
      break;
    case OperationKind::Read:
      count_up(mine.rdma_read_bytes, operation.bytes);
      count_up(mine.rdma_read_wrs, 1);
      count_up(other.rdma_read_resp_bytes, operation.bytes);
      break;
  }
}

void fill(Operation& operation, const Request& request, std::uint64_t bytes) {
  operation.kind = request.kind;
  operation.stage = Stage::Departing;
  operation.has_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  operation.completes = request.completes;
  operation.attempts = 0;
  operation.error = 0;
  operation.local_count = request.local.size();
  std::ranges::copy(request.local, operation.local.begin());
  operation.remote_address = request.remote_address;
  operation.key = request.key;
  operation.data = request.data;
  operation.bytes = bytes;
  operation.departed = 0;
  operation.landed = 0;
  operation.posted_ns = now_ns();
  operation.due_ns = 0;
  operation.context = request.context;
  operation.injected.clear();
  operation.copies = {};
  operation.is_gpu = is_gpu_memory(request.descriptors);
  if (request.atomic != nullptr) {
    operation.atomic = *request.atomic;
  }
  if ((request.flags & FI_INJECT) != 0) {
    for (const iovec& piece : request.local) {
      const auto* first = static_cast<const std::byte*>(piece.iov_base);
      operation.injected.insert(operation.injected.end(), first, first + piece.iov_len);
    }
    operation.local[0] = {operation.injected.data(), operation.injected.size()};
    operation.local_count = 1;
  }
}

}  // namespace

Transmitter::Transmitter(const Domain& domain)
    : domain_(domain),
      segment_(domain.link().segment()),
      settings_(domain.link().settings()),
      receiver_retries_(settings_.receiver_retries),
      chance_(settings_.seed * 1000003U + domain.nic()),
      operations_(settings_.transmit_depth) {
  for (std::size_t i = operations_.size(); i > 0; --i) {
    unused_.push_back(static_cast<std::uint32_t>(i - 1));
  }
}

void Transmitter::start(EndpointName name, CompletionQueue& queue, std::vector<Counter*> counters) {
  name_ = name;
  queue_ = &queue;
  counters_ = std::move(counters);
}

Route Transmitter::route_of(const Operation& operation) const {
  const bool is_read = operation.kind == OperationKind::Read;
  const std::uint32_t mine = domain_.nic();
  return is_read ? Route(segment_, operation.target_nic, mine)
                 : Route(segment_, mine, operation.target_nic);
}

EndpointSlot& Transmitter::target_of(const Operation& operation) const {
  return segment_.endpoints[operation.target.slot];
}

bool Transmitter::post(const Request& request, EndpointName target, std::uint64_t bytes) {
  if (unused_.empty()) {
    progress(now_ns());
  }
  if (unused_.empty()) {
    return false;
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  Operation& operation = operations_[index];
  fill(operation, request, bytes);
  operation.target = target;
  operation.target_nic = segment_.endpoints[target.slot].nic;
  departing_.push_back(index);
  depart_all(operation.posted_ns);
  return true;
}

std::uint64_t Transmitter::progress(std::uint64_t now) {
  depart_all(now);
  while (!agenda_.is_empty() && agenda_.first_due() <= now) {
    move_on(agenda_.take(), now);
  }
  const std::uint64_t due = agenda_.is_empty() ? kNever : agenda_.first_due();
  return departing_.empty() ? due : std::min(due, now + kRetryNs);
}

// Those that cannot leave yet stay in order.
void Transmitter::depart_all(std::uint64_t now) {
  const std::size_t looked = std::min(departing_.size(), kDepartingLooked);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < looked; ++i) {
    const std::uint32_t index = departing_[i];
    Operation& operation = operations_[index];
    if (depart(operation, now)) {
      operation.stage = Stage::Arriving;
      again(index, operation.due_ns + jitter());
    } else if (is_lost(operation, now)) {
      fail(index, FI_EHOSTUNREACH, now);
    } else {
      departing_[kept++] = index;
    }
  }
  const auto first = departing_.begin();
  departing_.erase(first + static_cast<std::ptrdiff_t>(kept),
                   first + static_cast<std::ptrdiff_t>(looked));
}

bool Transmitter::is_lost(const Operation& operation, std::uint64_t now) const {
  if (now <= operation.posted_ns + settings_.timeout_ns) {
    return false;  // first, as the rest asks the kernel
  }
  const EndpointSlot& target = target_of(operation);
  return route_of(operation).is_cut() || !is_open(target, operation.target.generation) ||
         !is_alive(look(target.pid));
}

// Sends all cells that may leave now; true once all have.
bool Transmitter::depart(Operation& operation, std::uint64_t now) {
  Route route = route_of(operation);
  if (route.is_cut() || !is_open(target_of(operation), operation.target.generation) ||
      !is_answered(operation)) {
    return false;
  }
  if (operation.stage == Stage::Departing && operation.due_ns == 0) {
    operation.posted_ns += first_delay(operation);
    operation.due_ns = operation.posted_ns;
  }
  do {
    if (!route.may_depart(operation.posted_ns, now)) {
      return false;
    }
    const std::uint64_t bytes = std::min(route.cell_bytes(), operation.bytes - operation.departed);
    operation.due_ns = std::max(operation.due_ns, route.send_cell(bytes, operation.posted_ns));
    operation.departed += bytes;
  } while (operation.departed < operation.bytes);
  return true;
}

// Before the first cell: the request of a read, the first packet to a peer.
std::uint64_t Transmitter::first_delay(const Operation& operation) {
  Peer& peer = peers_[operation.target.slot];
  const bool is_first = !std::exchange(peer.is_touched, true);
  return (operation.kind == OperationKind::Read ? settings_.latency_ns : 0) +
         (is_first ? settings_.first_packet_ns : 0);
}

std::uint64_t Transmitter::jitter() {
  constexpr double kTailMost = 50;
  if (settings_.shredded == 0) {
    return chance_.below(settings_.jitter_ns + 1);
  }
  // Half of them below jitter_ns, a few at many times that.
  const double tail = std::min(kTailMost, 1.0 / (1.0 - chance_.part()) - 1.0);
  return static_cast<std::uint64_t>(tail * static_cast<double>(settings_.jitter_ns));
}

// The handshake of EFA's RDM fabric: the first operation waits until the target has answered, which it does when
// its client makes progress.
bool Transmitter::is_answered(const Operation& operation) {
  if (settings_.handshake == 0) {
    return true;
  }
  Peer& peer = peers_[operation.target.slot];
  if (!peer.is_greeted) {
    EndpointSlot& target = target_of(operation);
    peer.is_greeted = target.arrivals.push({.kind = ArrivalKind::Greeting,
                                            .source = name_.slot,
                                            .source_generation = name_.generation},
                                           {});
    domain_.link().ring(target.process);
  }
  return peer.has_answered;
}

void Transmitter::move_on(std::uint32_t index, std::uint64_t now) {
  switch (operations_[index].stage) {
    case Stage::Departing:
      break;
    case Stage::Arriving:
      deliver(index, now);
      break;
    case Stage::Landing:
      land_part(index, now);
      break;
    case Stage::Delivered:
    case Stage::Failed:
      finish(index);
      break;
  }
}

void Transmitter::again(std::uint32_t index, std::uint64_t due_ns) {
  operations_[index].due_ns = due_ns;
  agenda_.add(due_ns, index);
}

void Transmitter::fail(std::uint32_t index, int error, std::uint64_t when) {
  Operation& operation = operations_[index];
  NicCounters& counters = segment_.nics[domain_.nic()].counters;
  if (operation.kind != OperationKind::Send) {
    count_up(operation.kind == OperationKind::Read ? counters.rdma_read_wr_err
                                                   : counters.rdma_write_wr_err,
             1);
  }
  operation.error = error;
  operation.stage = Stage::Failed;
  again(index, when);
}

// Everything has arrived: the data goes to its place and the target is told.
void Transmitter::deliver(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  if (!is_open(target_of(operation), operation.target.generation)) {
    fail(index, FI_EHOSTUNREACH, now + settings_.timeout_ns);
    return;
  }
  const bool is_new = operation.landed == 0 && !operation.copies.is_valid();
  if (is_new && chance_.below(kMillion) < route_of(operation).error_rate()) {
    fail(index, FI_EIO, now);
    return;
  }
  if (operation.kind == OperationKind::Send) {
    if (!take_receive(index, now)) {
      return;
    }
  } else if (operation.landed < operation.bytes) {
    if (settings_.shredded != 0 && operation.kind != OperationKind::Atomic) {
      operation.stage = Stage::Landing;
      land_part(index, now);
      return;
    }
    if (!copy_part(index, 0, operation.bytes, now)) {
      return;
    }
    operation.landed = operation.bytes;
  }
  if (tell_target(index, now)) {
    count(operation, segment_.nics[domain_.nic()].counters,
          segment_.nics[operation.target_nic].counters);
    operation.stage = Stage::Delivered;
    again(index,
          operation.due_ns + (operation.kind == OperationKind::Read ? 0 : settings_.latency_ns));
  }
}

// A send takes one buffer of the receiver; without one it comes again, as the NIC does.
bool Transmitter::take_receive(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  if (operation.landed != 0) {
    return true;  // it has one and waits for room
  }
  std::atomic<std::uint32_t>& receives = target_of(operation).receives;
  std::uint32_t left = receives.load(std::memory_order_relaxed);  // relaxed: the exchange decides
  do {
    if (left == 0) {
      count_up(segment_.nics[operation.target_nic].counters.rx_drops, 1);
      const bool is_over =
          receiver_retries_ != kRetriesWithoutEnd && operation.attempts >= receiver_retries_;
      if (is_over || !is_alive(look(target_of(operation).pid))) {
        fail(index, is_over ? FI_EAGAIN : FI_EHOSTUNREACH, now);
      } else {
        ++operation.attempts;
        again(index, now + kReceiverRetryNs);
      }
      return false;
    }
    // SYNC receive-posted: the promise before what is written for it.
  } while (!receives.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                           std::memory_order_relaxed));
  operation.landed = 1;
  return true;
}

bool Transmitter::tell_target(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  const bool is_send = operation.kind == OperationKind::Send;
  if (!is_send && (!operation.has_data || operation.kind == OperationKind::Read)) {
    return true;
  }
  EndpointSlot& target = target_of(operation);
  std::vector<std::byte> joined;
  const auto message = is_send ? message_of(operation, joined) : std::span<const std::byte>{};
  if (!message) {
    fail(index, FI_EFAULT, now);
    return false;
  }
  const Arrival arrival{.kind = is_send ? ArrivalKind::Message : ArrivalKind::Written,
                        .source = name_.slot,
                        .source_generation = name_.generation,
                        .has_data = operation.has_data ? 1U : 0U,
                        .data = operation.data,
                        .bytes = operation.bytes};
  if (target.arrivals.push(arrival, *message)) {
    domain_.link().ring(target.process);
    return true;
  }
  if (is_alive(look(target.pid))) {
    again(index, now + kRetryNs);
  } else {
    fail(index, FI_EHOSTUNREACH, now + settings_.timeout_ns);
  }
  return false;
}

// Copies a part of the operation, or does its atomic. False: a GPU is still at it, and the operation comes again in
// the same stage; or it has failed.
bool Transmitter::copy_part(std::uint32_t index,
                            std::uint64_t offset,
                            std::uint64_t bytes,
                            std::uint64_t now) {
  Operation& operation = operations_[index];
  const std::optional<int> error =
      operation.kind == OperationKind::Atomic
          ? do_atomic(segment_, domain_.kind(), operation)
          : copy_data(segment_, domain_.kind(), operation, offset, bytes);
  if (!error) {
    again(index, now + kGpuLookNs);
  } else if (*error != 0) {
    fail(index, *error, now);
  }
  return error == 0;
}

// Shredded: the parts of an operation are copied one by one, from one that chance gives on, with pauses in which
// others overtake.
void Transmitter::land_part(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  const Shreds shreds(operation.remote_address, operation.bytes, operation.posted_ns);
  const Shreds::Part part = shreds.part(operation.landed);
  if (!copy_part(index, part.offset, part.bytes, now)) {
    return;
  }
  ++operation.landed;
  if (operation.landed < shreds.count()) {
    again(index, now + chance_.below(settings_.jitter_ns + 1));
    return;
  }
  operation.landed = operation.bytes;
  operation.stage = Stage::Arriving;
  deliver(index, now);
}

// Tells the client and frees the operation.
void Transmitter::finish(std::uint32_t index) {
  Operation& operation = operations_[index];
  if (operation.completes || operation.error != 0) {
    const Completion completion{.context = operation.context,
                                .flags = completion_flags(operation),
                                .error = operation.error};
    if (!queue_->add(completion)) {
      again(index, now_ns() + kRetryNs);
      return;
    }
  }
  for (Counter* counter : counters_) {
    auto& ended = operation.error == 0 ? counter->value : counter->errors;
    // SYNC counted (pairs with registration.cpp): what the operation has written, before its count.
    ended.fetch_add(1, std::memory_order_release);
  }
  unused_.push_back(index);
}

}  // namespace loom
