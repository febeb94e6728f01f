// Regions that are not the same on all PEs: each PE gives its memory numbers of its own, and an
// operation names the peer's number. For libraries that hand their handles out themselves.
//
// Not collective; how the keys reach the peers is the caller's business. Threads: any; it takes the
// lock of the RailsTransport that it belongs to.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "src/base/ids.hpp"
#include "src/fabric/rail.hpp"
#include "src/gpu/word_memory.hpp"
#include "src/transport/rails/contacts.hpp"
#include "src/transport/rails/region_memory.hpp"
#include "src/transport/rails/state.hpp"
#include "src/transport/transport.hpp"

namespace weft::transport::rails {

class OwnRegions {
 public:
  OwnRegions(Transport& transport, std::mutex& mutex, State& state, Contacts& contacts)
      : transport_(transport), mutex_(mutex), state_(state), contacts_(contacts) {}

  // This PE's memory, under a number that is free. Returns the keys by rail. Throws Error if the
  // number is too high, or a rail cannot register the memory.
  [[nodiscard]] std::vector<fabric::RegionKey> offer(RegionIndex index,
                                                     std::span<std::byte> memory);
  // The same for memory of this PE's GPU. NICs carry its data; what messages bring to it, and its
  // words, the CPU changes through `words`, which must live until withdraw. Throws Error also if a
  // NIC does not reach the memory.
  [[nodiscard]] std::vector<fabric::RegionKey> offer(RegionIndex index,
                                                     const fabric::DeviceMemory& memory,
                                                     gpu::WordMemory& words);
  // Enters the keys, by rail of `peer`, of the region that is its `index`, in place of older ones.
  // Throws Error (Mismatch) if they are not as many as it has rails.
  void enter(Pe peer, RegionIndex index, std::span<const fabric::RegionKey> keys);
  // Ends `offer`: operations of peers that arrive later are dropped. Frees the number.
  void withdraw(RegionIndex index);

 private:
  [[nodiscard]] fabric::RegionKey register_device(LocalRail& local,
                                                  const fabric::DeviceMemory& memory) const;

  Transport& transport_;
  std::mutex& mutex_;
  State& state_;
  Contacts& contacts_;
};

}  // namespace weft::transport::rails
