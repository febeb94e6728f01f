// The proxy's interface to its GPU: bulk copies between pinned host memory and GPU memory, and the
// application of small operations when no GPU thread waits. Implemented with CUDA, and in tests
// with threads and memcpy.
//
// Threads: only the proxy's thread, unless the implementation allows more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/gpu/copier.hpp"

namespace weft::proxy {

using gpu::CopyDirection;

// Copies of one direction complete in the order in which they were started; those of different
// directions in any order.
class Copier {
 public:
  // Numbered 1, 2, 3, ... per direction. Ticket 0 is always complete.
  using Ticket = std::uint64_t;

  Copier() = default;
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  virtual ~Copier() = default;

  // Starts a copy, and returns at once. The caller must not touch either side until it is complete.
  virtual Ticket copy(CopyDirection direction,
                      void* dest,
                      const void* source,
                      std::size_t bytes) noexcept = 0;

  // True if the copy and all earlier ones in its direction are complete; what it wrote to the GPU
  // is then visible to the GPU's threads. Called often: an implementation queries the driver only
  // for copies not yet known to be complete.
  [[nodiscard]] virtual bool is_done(CopyDirection direction, Ticket ticket) noexcept = 0;

  // Why a copy has failed; it and later ones are never done. Null if none has. Called in each pass.
  [[nodiscard]] virtual const std::string* failure() const noexcept { return nullptr; }

  // Makes NIC writes to the GPU that were reported before the call visible to the GPU's threads
  // before it returns. No-op if the GPU's platform orders them itself.
  virtual void show_nic_writes() noexcept {}
};

class Applier {
 public:
  Applier() = default;
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  virtual ~Applier() = default;

  // Called when records have been in the inbox for a while: makes the GPU drain it once, as
  // device::InboxConsumer does. Returns at once. Called repeatedly until the records are applied.
  // No effect while an earlier drain is pending.
  virtual void wake_applier() noexcept = 0;
};

}  // namespace weft::proxy
