// What the targets of an endpoint's operations have for them: an open endpoint of the same fabric,
// an address vector that holds the initiator, and a buffer for what is told.
//
// Threads: under the initiator's lock; what it reads of the target is in shared memory.
#pragma once

#include "loom/src/domain.hpp"
#include "loom/src/operation.hpp"

namespace loom {

class Targets {
 public:
  explicit Targets(const Domain& domain);

  // Who asks.
  void start(EndpointName name) { name_ = name; }

  [[nodiscard]] EndpointSlot& of(const Operation& operation) const;

  [[nodiscard]] bool are_open(const Operation& operation) const;
  [[nodiscard]] bool are_alive(const Operation& operation) const;

  // Of EFA's other fabric: the one speaks a protocol, the other the device's own language.
  [[nodiscard]] bool are_foreign(const Operation& operation) const;

  // Whether the target's NIC refuses RMA, as its client has not inserted the initiator.
  [[nodiscard]] bool refuse(const Operation& operation) const;

  // Takes a buffer for an operation that needs one and has none. False: there is none now, and
  // rx_drops has counted it.
  [[nodiscard]] bool give_receive(Operation& operation) const;

 private:
  [[nodiscard]] bool take_posted(Operation& operation) const;
  [[nodiscard]] bool take_of_provider(Operation& operation) const;

  const Domain& domain_;
  Segment& segment_;
  EndpointName name_;
};

}  // namespace loom
