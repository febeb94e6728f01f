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

// A NIC that answers says at once that there is no such endpoint.
std::uint64_t silence_ns(const Settings& settings) {
  return settings.errors_by_case == 0 ? settings.timeout_ns : settings.latency_ns;
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
  operation.has_receive = false;
  operation.has_connection = false;
  operation.attempts = 0;
  operation.failure = {};
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
      targets_(domain),
      receiver_retries_(settings_.receiver_retries),
      chance_(settings_.seed * 1000003U + domain.nic()),
      operations_(settings_.transmit_depth) {
  for (std::size_t i = operations_.size(); i > 0; --i) {
    unused_.push_back(static_cast<std::uint32_t>(i - 1));
  }
}

void Transmitter::start(EndpointName name, CompletionQueue& queue, std::vector<Counter*> counters) {
  name_ = name;
  targets_.start(name);
  queue_ = &queue;
  counters_ = std::move(counters);
}

Route Transmitter::route_of(const Operation& operation) const {
  const bool is_read = operation.kind == OperationKind::Read;
  const std::uint32_t mine = domain_.nic();
  return is_read ? Route(segment_, operation.target_nic, mine)
                 : Route(segment_, mine, operation.target_nic);
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
      fail(index, silence_of(operation), now);
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
  const bool is_unanswered = domain_.kind().has_protocol && targets_.are_foreign(operation);
  return route_of(operation).is_cut() || !targets_.are_open(operation) ||
         !targets_.are_alive(operation) || is_unanswered;
}

// Sends all cells that may leave now; true once all have.
bool Transmitter::depart(Operation& operation, std::uint64_t now) {
  Route route = route_of(operation);
  const bool waits_for_endpoint = settings_.errors_by_case == 0 && !targets_.are_open(operation);
  if (route.is_cut() || waits_for_endpoint || !is_answered(operation)) {
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

// The handshake of EFA's RDM fabric: the first operation waits until the target has answered, which
// it does when its client makes progress.
bool Transmitter::is_answered(const Operation& operation) {
  if (domain_.kind().has_protocol && targets_.are_foreign(operation)) {
    return false;
  }
  if (settings_.handshake == 0) {
    return true;
  }
  Peer& peer = peers_[operation.target.slot];
  if (!peer.is_greeted) {
    EndpointSlot& target = targets_.of(operation);
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

void Transmitter::fail(std::uint32_t index, Cause cause, std::uint64_t when) {
  fail(index, failure_of(cause, domain_.kind(), settings_), when);
}

void Transmitter::fail(std::uint32_t index, Failure failure, std::uint64_t when) {
  Operation& operation = operations_[index];
  NicCounters& counters = segment_.nics[domain_.nic()].counters;
  if (operation.kind != OperationKind::Send) {
    count_up(operation.kind == OperationKind::Read ? counters.rdma_read_wr_err
                                                   : counters.rdma_write_wr_err,
             1);
  }
  operation.failure = failure;
  operation.stage = Stage::Failed;
  again(index, when);
}

// Why an operation has no answer.
Cause Transmitter::silence_of(const Operation& operation) {
  if (!route_of(operation).is_cut() && !targets_.are_foreign(operation)) {
    return Cause::NoEndpoint;
  }
  return peers_[operation.target.slot].is_proven ? Cause::Silent : Cause::Unreachable;
}

// Everything has arrived: the data goes to its place and the target is told.
void Transmitter::deliver(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  if (!targets_.are_open(operation)) {
    fail(index, Cause::NoEndpoint, now + silence_ns(settings_));
    return;
  }
  const bool is_new =
      operation.landed == 0 && operation.attempts == 0 && !operation.copies.is_valid();
  if (is_new && targets_.refuse(operation)) {
    fail(index, Cause::UnknownPeer, now + settings_.latency_ns);
    return;
  }
  if (is_new && chance_.below(kMillion) < route_of(operation).error_rate()) {
    fail(index, Cause::Chance, now);
    return;
  }
  if (operation.kind != OperationKind::Send && operation.landed < operation.bytes) {
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
  if (!targets_.give_receive(operation)) {
    wait_for_receive(index, now);
    return;
  }
  if (tell_target(index, now)) {
    count(operation, segment_.nics[domain_.nic()].counters,
          segment_.nics[operation.target_nic].counters);
    operation.stage = Stage::Delivered;
    again(index,
          operation.due_ns + (operation.kind == OperationKind::Read ? 0 : settings_.latency_ns));
  }
}

// Without a buffer of the receiver the operation comes again, as the NIC does.
void Transmitter::wait_for_receive(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  const bool is_over =
      receiver_retries_ != kRetriesWithoutEnd && operation.attempts >= receiver_retries_;
  if (is_over || !targets_.are_alive(operation)) {
    fail(index, is_over ? Cause::NoReceive : Cause::NoEndpoint, now);
    return;
  }
  ++operation.attempts;
  again(index, now + kReceiverRetryNs);
}

bool Transmitter::tell_target(std::uint32_t index, std::uint64_t now) {
  Operation& operation = operations_[index];
  const bool is_send = operation.kind == OperationKind::Send;
  if (!is_send && (!operation.has_data || operation.kind == OperationKind::Read)) {
    return true;
  }
  EndpointSlot& target = targets_.of(operation);
  if (is_send && targets_.are_foreign(operation)) {
    count_up(segment_.nics[operation.target_nic].counters.rx_drops, 1);
    return true;  // the target's protocol drops what is no packet of its own
  }
  std::vector<std::byte> joined;
  const auto message = is_send ? message_of(operation, joined) : std::span<const std::byte>{};
  if (!message) {
    fail(index, Failure{FI_EFAULT, FI_EFAULT}, now);
    return false;
  }
  const Arrival arrival{.kind = is_send ? ArrivalKind::Message : ArrivalKind::Written,
                        .source = name_.slot,
                        .source_generation = name_.generation,
                        .has_data = operation.has_data ? 1U : 0U,
                        .has_receive = operation.has_receive ? 1U : 0U,
                        .data = operation.data,
                        .bytes = operation.bytes};
  if (target.arrivals.push(arrival, *message)) {
    domain_.link().ring(target.process);
    return true;
  }
  if (targets_.are_alive(operation)) {
    again(index, now + kRetryNs);
  } else {
    fail(index, Cause::NoEndpoint, now + silence_ns(settings_));
  }
  return false;
}

// Copies a part of the operation, or does its atomic. False: a GPU is still at it, and the
// operation comes again in the same stage; or it has failed.
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
  } else if (*error == FI_EACCES) {
    fail(index, Cause::BadKey, now);
  } else if (*error == FI_EHOSTUNREACH) {
    fail(index, Cause::NoEndpoint, now);
  } else if (*error != 0) {
    fail(index, Failure{*error, *error}, now);
  }
  return error == 0;
}

// Shredded: the parts of an operation are copied one by one, from one that chance gives on, with
// pauses in which others overtake.
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
  if (operation.completes || operation.failure.error != 0) {
    const Completion completion{.context = operation.context,
                                .flags = completion_flags(operation),
                                .failure = operation.failure};
    if (!queue_->add(completion)) {
      again(index, now_ns() + kRetryNs);
      return;
    }
  }
  for (Counter* counter : counters_) {
    auto& ended = operation.failure.error == 0 ? counter->value : counter->errors;
    // SYNC counted (pairs with registration.cpp): what the operation has written, before its count.
    ended.fetch_add(1, std::memory_order_release);
  }
  if (settings_.errors_by_case != 0 && operation.failure.error == 0) {
    peers_[operation.target.slot].is_proven = true;
  }
  unused_.push_back(index);
}

}  // namespace loom
