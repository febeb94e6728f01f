// How the PEs of a job find each other before the fabric is available: rank, size, allgather,
// barrier.
//
// Control path only: used at init, in the checks of collective allocations and at finalize. One
// thread at a time. Every wait has a deadline, and its error names the PEs that did not arrive.
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
  // "tcp", "pmix", "pmi", "slurm", "torchrun", "id", "in-process", "single": for weft-info and log
  // messages.
  [[nodiscard]] virtual std::string_view name() const = 0;

  // What the PEs of the job know and others do not. Empty if the launcher has told them nothing of
  // that kind, or on one host, where others cannot reach the rendezvous.
  [[nodiscard]] virtual std::string_view secret() const { return {}; }

  // Collective. Returns every PE's blob, indexed by PE. Blobs may differ in size.
  // Throws Error (Timeout, PeerLost) naming the PEs that are missing.
  virtual std::vector<Blob> allgather(std::span<const std::byte> mine) = 0;

  // Collective. Throws as allgather does.
  virtual void barrier() { static_cast<void>(allgather({})); }

  // Whether a job runs on this link. Between two jobs of a process, after take_part(false), an
  // allgather of the others waits for this PE as before, but its process may end without being
  // taken for lost, and nothing ends this process. Not collective.
  virtual void take_part(bool takes_part) { static_cast<void>(takes_part); }

  // This PE cannot take part in the job, and leaves it next: tells the others why, if the bootstrap
  // has a way.
  virtual void give_up(std::string_view why) { static_cast<void>(why); }

  // Tells the launcher to terminate all PEs and to return `status`. Returns when the launcher has
  // confirmed, or if there is none. Not collective; any thread.
  virtual void end_job(int status) { static_cast<void>(status); }

  // Exits this process silently if a PE has called end_job; waits briefly for that notification.
  // Code that finds a peer lost calls it first. Any thread.
  virtual void follow_end() {}

  // True if it has been heard here, without waiting, that `pe` has died. Only with
  // WEFT_ON_PEER_LOST=report, and not from every launcher. Any thread.
  [[nodiscard]] virtual bool has_lost(Pe pe) {
    static_cast<void>(pe);
    return false;
  }
};

// Selects the method that the environment offers, in this order: WEFT_RENDEZVOUS (weft-run),
// torchrun (known by TORCHELASTIC_RUN_ID), PMIx, PMI-1, a Slurm step of several tasks, torchrun's
// variables set by hand, single process. WEFT_BOOTSTRAP overrides it. Blocks until all PEs have
// joined, or throws.
[[nodiscard]] std::unique_ptr<Bootstrap> connect(const Config& config);

}  // namespace weft::bootstrap
