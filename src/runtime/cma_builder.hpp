// Builds the way to PEs of this node whose memory is not mapped here: cross-memory attach, and a thread
// that serves them while this PE computes.
//
// Collective; one thread of each PE.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/heap.hpp"
#include "src/proxy/progress_thread.hpp"
#include "src/runtime/membership.hpp"
#include "src/transport/cma/cma_transport.hpp"

namespace weft::runtime {

// Destroyed from the last member to the first.
struct CmaParts {
  std::unique_ptr<transport::cma::CmaTransport> transport;
  std::unique_ptr<proxy::ProgressThread> thread;  // null if WEFT_PROGRESS_THREAD=no
};

// Throws Error.
[[nodiscard]] std::unique_ptr<CmaParts> build_cma(const Config& config,
                                                  bootstrap::Bootstrap& bootstrap,
                                                  const heap::Heap& heap,
                                                  const Membership& membership);

}  // namespace weft::runtime
