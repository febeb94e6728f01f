// The receiving side of an endpoint: buffers that the client has posted, and what has arrived in
// the shared ring, which it turns into completions.
//
// Threads: under its endpoint's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "loom/src/completion_queue.hpp"
#include "loom/src/domain.hpp"
#include "loom/src/transmitter.hpp"

namespace loom {

class Receiver {
 public:
  Receiver(const Domain& domain, Transmitter& transmitter);

  // Before the first arrival is taken.
  void start(EndpointName name, CompletionQueue& queue, AddressVector& vector);

  // False: as many as may be are posted.
  [[nodiscard]] bool post(void* buffer, std::size_t bytes, void* context);

  // Turns what has arrived into completions, as far as the queue has room.
  void take_arrivals();

  [[nodiscard]] bool has_arrivals() const { return slot().arrivals.has_some(); }

  // Only tells a client that makes progress itself that it should.
  void signal() const { queue_->signal(); }

 private:
  struct Buffer {
    void* first = nullptr;
    std::size_t bytes = 0;
    void* context = nullptr;
  };

  [[nodiscard]] EndpointSlot& slot() const;
  [[nodiscard]] bool take(const Arrival& arrival, const std::byte* payload);
  [[nodiscard]] bool answer(const Arrival& greeting) const;
  void note_read(const Arrival& arrival) const;
  [[nodiscard]] bool take_data(const Arrival& arrival);
  [[nodiscard]] std::optional<Buffer> take_buffer();
  [[nodiscard]] bool receive(const Arrival& arrival, const std::byte* payload);
  void complete(const Completion& completion);

  const Domain& domain_;
  Transmitter& transmitter_;
  EndpointName name_;
  CompletionQueue* queue_ = nullptr;
  AddressVector* vector_ = nullptr;
  std::deque<Buffer> buffers_;
  std::deque<Completion> held_;  // that the queue had no room for
};

}  // namespace loom
