// Builds the object graph of one PE and destroys it. An object, not a global: tests create several
// in one process; only the C interface (src/api/process.cpp) keeps one in a variable.
//
// Threads: constructor and destructor are collective, by one thread per PE.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/counters.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/collectives/collectives.hpp"
#include "src/rma/rma.hpp"
#include "src/runtime/symmetric_heap.hpp"

namespace weft::runtime {

class DeviceJob;
struct TransportKind;

class Runtime {
 public:
  // Joins the job through `bootstrap`. Throws Error.
  Runtime(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap);
  // Uses these transports in place of transport_kinds(); they outlive it.
  Runtime(const Config& config,
          std::unique_ptr<bootstrap::Bootstrap> bootstrap,
          std::span<const TransportKind> kinds);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Collective if all PEs are alive: completes everything and waits for all. Never throws, and does
  // not wait for the others once one of them is lost.
  ~Runtime();

  [[nodiscard]] Pe pe() const;
  [[nodiscard]] std::uint32_t pe_count() const;
  [[nodiscard]] std::uint32_t node() const;
  [[nodiscard]] std::uint32_t node_count() const;
  [[nodiscard]] std::uint32_t node_pe() const;
  [[nodiscard]] std::uint32_t node_pe_count() const;
  [[nodiscard]] std::uint32_t node_of(Pe pe) const;
  // This PE's index among the PEs of this machine.
  [[nodiscard]] std::uint32_t machine_pe() const;

  // Collective. Makes this PE's own memory symmetric, with the same size on all PEs. Throws Error
  // (InvalidArgument for memory that is empty or already symmetric, Mismatch); nothing has then
  // changed on any PE. No other thread of this PE may be in a call meanwhile.
  void register_window(void* address, std::uint64_t bytes);
  // Collective, after all operations on it are complete. Throws Error (InvalidArgument, Mismatch).
  void unregister_window(void* address);

  // The error message that names the lost PE and the reason. Slow; any thread. Does not return if
  // the PEs are terminating because one of them called end_job.
  [[nodiscard]] std::string lost_peers() const;
  // Makes the launcher terminate all PEs and return `status`, as far as it can. Any thread.
  void end_job(int status);

  [[nodiscard]] SymmetricHeap& heap();
  [[nodiscard]] rma::Rma& rma();
  [[nodiscard]] rma::Context& default_context();
  [[nodiscard]] collectives::Collectives& collectives();
  [[nodiscard]] const Config& config() const;

  // ---- The GPU of this PE.

  // Collective. Opens the current GPU. Throws the same Error on all PEs.
  void open_device();
  // Null before open_device.
  [[nodiscard]] DeviceJob* device() const;

  // Opens the connections to `peers`. Throws Error naming the pair that could not be opened.
  void warm_up(const std::vector<Pe>& peers);

  // One entry per rail; empty if the job has one node.
  [[nodiscard]] std::vector<RailCounters> counters() const;
  // One entry per rail of `peer`; empty if it is reached through memory.
  [[nodiscard]] std::vector<PeerRailCounters> peer_counters(Pe peer) const;

 private:
  struct Objects;  // in the order in which they are built
  std::unique_ptr<Objects> objects_;
};

}  // namespace weft::runtime
