// The end of a job: a PE leaves when no other needs it any more.
//
// The host's own thread has ended by then, and its bootstrap may not be used. So the PEs meet over
// the rails: in round k each tells the PE 2^k behind it, after it has heard from the one 2^k before
// (dissemination barrier).
#pragma once

#include <cstdint>

#include "src/plugins/nvshmem/control_memory.hpp"
#include "src/plugins/nvshmem/queue.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::plugins::nvshmem {

// Returns when all PEs have called it and their operations are done, or after `patience_ms`, or
// when a PE is lost. True: all were there.
bool bid_farewell(transport::rails::RailsTransport& rails,
                  Queue& queue,
                  ControlWords& words,
                  Pe me,
                  std::uint32_t pe_count,
                  std::uint32_t patience_ms) noexcept;

}  // namespace weft::plugins::nvshmem
