// The proxy's seam to its GPU: who moves bulk data between pinned host memory and GPU memory, and who
// applies small things where no GPU thread waits. CUDA implements it; tests do with threads and memcpy.
//
// Threads: the proxy's thread only, unless the implementation says more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::proxy {

enum class Direction : std::uint8_t { ToGpu, FromGpu };

// Copies of one direction are done in the order in which they were asked for; those of different
// directions in any order.
class Copier {
 public:
  // Per direction 1, 2, 3, ... Ticket 0 is always done.
  using Ticket = std::uint64_t;

  Copier() = default;
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  virtual ~Copier() = default;

  // Starts a copy, and returns at once. Both sides stay untouched by the caller until it is done.
  virtual Ticket copy(Direction direction,
                      void* dest,
                      const void* source,
                      std::size_t bytes) noexcept = 0;

  // True if the copy is done, and so are all before it in its direction; what it wrote to the GPU is
  // then visible to the GPU's threads. Called often: an implementation asks the driver only about
  // what it has not seen done yet.
  [[nodiscard]] virtual bool is_done(Direction direction, Ticket ticket) noexcept = 0;

  // What NICs have written to the GPU, and reported, before the call is visible to the GPU's threads when
  // it returns. Nothing to do where the GPU's platform orders that by itself.
  virtual void show_nic_writes() noexcept {}
};

class Applier {
 public:
  Applier() = default;
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  virtual ~Applier() = default;

  // Records have lain in the inbox for a while: have the GPU drain it once, with device::InboxConsumer.
  // Returns at once. Called again, every so often, until they are applied; a call while an earlier one
  // is still on its way does nothing.
  virtual void wake_applier() noexcept = 0;
};

}  // namespace weft::proxy
