// Arrivals become completions.
//
// Threads: under its endpoint's lock.
#include "loom/src/receiver.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "loom/src/slots.hpp"

namespace loom {

Receiver::Receiver(const Domain& domain, Transmitter& transmitter)
    : domain_(domain), transmitter_(transmitter) {}

void Receiver::start(EndpointName name, CompletionQueue& queue, AddressVector& vector) {
  name_ = name;
  queue_ = &queue;
  vector_ = &vector;
}

EndpointSlot& Receiver::slot() const {
  return domain_.link().segment().endpoints[name_.slot];
}

bool Receiver::post(void* buffer, std::size_t bytes, void* context) {
  if (buffers_.size() >= domain_.link().settings().receive_depth) {
    return false;
  }
  buffers_.push_back({buffer, bytes, context});
  // SYNC receive-posted: the buffer before the promise.
  slot().receives.fetch_add(1, std::memory_order_release);
  return true;
}

void Receiver::take_arrivals() {
  while (!held_.empty() && queue_->add(held_.front())) {
    held_.pop_front();
  }
  const auto next = [this](const Arrival& arrival, const std::byte* payload) {
    return take(arrival, payload);
  };
  while (held_.empty() && slot().arrivals.pop(next)) {
  }
}

// The provider posts a receive again for what it has read.
void Receiver::note_read(const Arrival& arrival) const {
  if (domain_.kind().connection_receives != 0) {
    // relaxed: a count
    domain_.link().segment().unread[name_.slot][arrival.source].fetch_sub(
        1, std::memory_order_relaxed);
  }
}

bool Receiver::take(const Arrival& arrival, const std::byte* payload) {
  switch (arrival.kind) {
    case ArrivalKind::Padding:
      return true;
    case ArrivalKind::Greeting:
      return answer(arrival);
    case ArrivalKind::Answer:
      transmitter_.note_answer(arrival.source);
      return true;
    case ArrivalKind::Message:
      return receive(arrival, payload);
    case ArrivalKind::Written:
      return take_data(arrival);
  }
  return true;
}

bool Receiver::answer(const Arrival& greeting) const {
  EndpointSlot& other = domain_.link().segment().endpoints[greeting.source];
  if (!is_open(other, greeting.source_generation)) {
    return true;  // it has gone
  }
  const Arrival answer{
      .kind = ArrivalKind::Answer, .source = name_.slot, .source_generation = name_.generation};
  if (!other.arrivals.push(answer, {})) {
    return false;
  }
  domain_.link().ring(other.process);
  return true;
}

// Of a write. Where that took a buffer, the client learns it by that buffer's context alone
// (prov/efa/src/efa_cq.c: efa_cq_read_entry_common).
bool Receiver::take_data(const Arrival& arrival) {
  void* context = nullptr;
  if (arrival.has_receive != 0) {
    const auto buffer = take_buffer();
    if (!buffer) {
      return false;
    }
    context = buffer->context;
  }
  note_read(arrival);
  complete({.context = context,
            .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
            .bytes = arrival.bytes,
            .data = arrival.data,
            .source = vector_->find(EndpointName{arrival.source, arrival.source_generation})});
  return true;
}

// Empty where none is posted, which cannot be: the sender was promised one.
std::optional<Receiver::Buffer> Receiver::take_buffer() {
  if (buffers_.empty()) {
    return std::nullopt;
  }
  const Buffer buffer = buffers_.front();
  buffers_.pop_front();
  return buffer;
}

bool Receiver::receive(const Arrival& arrival, const std::byte* payload) {
  const auto taken = take_buffer();
  if (!taken) {
    return false;
  }
  const Buffer& buffer = *taken;
  note_read(arrival);
  const std::uint64_t bytes = std::min<std::uint64_t>(arrival.bytes, buffer.bytes);
  if (bytes > 0) {
    std::memcpy(buffer.first, payload, bytes);
  }
  complete({.context = buffer.context,
            .flags = FI_RECV | FI_MSG | (arrival.has_data != 0 ? FI_REMOTE_CQ_DATA : 0),
            .bytes = arrival.bytes,
            .buffer = buffer.first,
            .data = arrival.data,
            .source = vector_->find(EndpointName{arrival.source, arrival.source_generation}),
            .failure = {.error = arrival.bytes > buffer.bytes ? FI_ETRUNC : 0}});
  return true;
}

void Receiver::complete(const Completion& completion) {
  if (!queue_->add(completion)) {
    held_.push_back(completion);
  }
}

}  // namespace loom
