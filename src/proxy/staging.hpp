// The pinned host memory through which a PE's GPU and its remote peers' GPUs exchange data if the
// NIC cannot access GPU memory: a symmetric region, its sizes, and its layout. Pure.
//
// Layout: credits[pe] (words), arrivals[pe][slot] (words), direct arrivals[pe][slot] (words), then
// per PE the slots that it writes into, then per PE the slots that we fill for it. The PE's number
// is the index on both sides, so a sender computes the location without a query; the entries of PEs
// that are not remote stay unused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/ids.hpp"

namespace weft::proxy {

struct StagingOptions {
  std::uint32_t slots_per_peer = 8;
  std::size_t slot_bytes = std::size_t{128} << 10U;
  std::size_t total_bytes_max = std::size_t{64} << 20U;
};

// The most direct puts to one peer in flight, in jobs of up to 2048 PEs: as many as commands are
// queued. The words of a window of 128 came back all together, so that the next began when they had
// (docs/LOOM.md).
inline constexpr std::uint32_t kGpuDirectWindow = 256;

class StagingLayout {
 public:
  // The sizes shrink until everything fits into `total_bytes_max`: slots down to 4 KiB, then their
  // number down to 2. Jobs that still exceed it (more than 4096 PEs by default) use more memory.
  // The same arguments give the same layout on every PE. Throws Error if the options are invalid.
  StagingLayout(std::uint32_t pe_count, const StagingOptions& options);

  [[nodiscard]] std::size_t region_bytes() const { return send_offset_ + peer_bytes() * pe_count_; }

  [[nodiscard]] std::uint32_t slots() const { return slots_; }

  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }

  // Direct puts to one peer in flight: fewer in large jobs, whose words would take too much.
  [[nodiscard]] std::uint32_t direct_window() const { return direct_window_; }

  // The number of our parcels that `peer` has applied; the peer adds to this word of ours.
  [[nodiscard]] std::size_t credit(Pe peer) const { return peer.value * kWordBytes; }

  // 1 + the number of the parcel that `sender` put into slot `slot`; the sender sets this word of
  // ours.
  [[nodiscard]] std::size_t arrival(Pe sender, std::uint32_t slot) const {
    return (pe_count_ + std::size_t{sender.value} * slots_ + slot) * kWordBytes;
  }

  // 1 + the number of the direct put of `sender` whose data is in our GPU's memory; the sender sets
  // this word of ours. `slot` is the number modulo direct_window().
  [[nodiscard]] std::size_t direct_arrival(Pe sender, std::uint32_t slot) const {
    return (std::size_t{pe_count_} * (1 + slots_) + std::size_t{sender.value} * direct_window_ +
            slot) *
           kWordBytes;
  }

  [[nodiscard]] std::size_t receive_slot(Pe sender, std::uint32_t slot) const {
    return receive_offset_ + sender.value * peer_bytes() + slot * slot_bytes_;
  }

  [[nodiscard]] std::size_t send_slot(Pe peer, std::uint32_t slot) const {
    return send_offset_ + peer.value * peer_bytes() + slot * slot_bytes_;
  }

 private:
  static constexpr std::size_t kWordBytes = 8;

  [[nodiscard]] std::size_t peer_bytes() const { return slots_ * slot_bytes_; }

  std::uint32_t pe_count_;
  std::uint32_t slots_;
  std::uint32_t direct_window_ = kGpuDirectWindow;
  std::size_t slot_bytes_;
  std::size_t receive_offset_ = 0;
  std::size_t send_offset_ = 0;
};

}  // namespace weft::proxy
