// Builds the way to other nodes: finds the NICs, chooses this PE's, opens them, tells the peers, opens
// the connections and starts the progress thread.
//
// Collective; called once at init, by one thread of each PE.
#pragma once

#include <memory>
#include <span>

#include "src/base/config.hpp"
#include "src/base/counters.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/heap.hpp"
#include "src/proxy/progress_thread.hpp"
#include "src/runtime/membership.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::runtime {

// What the job's other nodes are reached by. Destroyed from the last member to the first.
struct RailsParts {
  std::unique_ptr<transport::rails::RailsTransport> transport;
  std::unique_ptr<proxy::ProgressThread> thread;  // null if WEFT_PROGRESS_THREAD=no
};

// Opens the rails and tells the peers. Null if the job has one node. Throws Error: no NIC, a peer whose
// rails do not fit ours, a provider that is not there.
[[nodiscard]] std::unique_ptr<RailsParts> build_rails(const Config& config,
                                                      bootstrap::Bootstrap& bootstrap,
                                                      const heap::Heap& heap,
                                                      const Membership& membership);

// Starts them, counting in `blocks`, and opens the connections. Throws Error: a peer that cannot be
// reached.
void start_rails(RailsParts& parts,
                 const CounterBlocks& blocks,
                 const Config& config,
                 bootstrap::Bootstrap& bootstrap,
                 std::uint32_t spin_us);

}  // namespace weft::runtime
