// How the PEs of a job find each other before there is any fabric: rank, size, allgather, barrier.
//
// Control path only: used at init, at collective allocation's checks and at finalize. One thread at
// a time. Every wait has a deadline and its error names the PEs that did not come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/ids.hpp"

namespace weft::bootstrap {

using Blob = std::vector<std::byte>;

class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual Pe pe() const = 0;
  [[nodiscard]] virtual std::uint32_t pe_count() const = 0;
  // "tcp", "pmix", "torchrun", "in-process", "single": for weft-info and messages.
  [[nodiscard]] virtual std::string_view name() const = 0;

  // Collective. Returns every PE's blob, indexed by PE. Blobs may differ in size.
  // Throws Error (Timeout, PeerLost) naming the PEs that are missing.
  virtual std::vector<Blob> allgather(std::span<const std::byte> mine) = 0;

  // Collective. Throws as allgather does.
  virtual void barrier() { static_cast<void>(allgather({})); }

  // Tells whoever started the job to end all its PEs and to return `status`; returns when it has heard
  // so, or when there is nobody to tell. Not collective; any thread.
  virtual void end_job(int status) { static_cast<void>(status); }

  // Ends this process, quietly, if a PE has called end_job; waits a little for that news. Whoever finds
  // a peer lost calls it first. Any thread.
  virtual void follow_end() {}
};

// Picks what the environment offers, in the order: WEFT_RENDEZVOUS (weft-run), PMIx, torchrun's
// variables, alone. WEFT_BOOTSTRAP overrules. Blocks until all PEs have come, or throws.
[[nodiscard]] std::unique_ptr<Bootstrap> connect(const Config& config);

}  // namespace weft::bootstrap
