// The Transport to peers whose memory is mapped here: load, store and CPU atomics, done when post
// returns. rma takes the same functions directly (copy.hpp, atomic_update.hpp), without a virtual
// call; this class puts them behind the seam, for the conformance suite and for whoever needs one
// kind of peer only.
//
// Threads: any; it holds nothing that changes.
#pragma once

#include <vector>

#include "src/transport/transport.hpp"

namespace weft::transport {

class MappedTransport final : public Transport {
 public:
  // `bases`: region 0 of each PE as mapped here.
  explicit MappedTransport(std::vector<std::byte*> bases) : bases_(std::move(bases)) {}

  // Never Again: there is no queue.
  Status post(const Operation& operation) noexcept override;

  void flush(Pe /*peer*/) noexcept override {}

  bool progress() noexcept override { return false; }

  bool wait_for_event(std::uint32_t timeout_us) noexcept override;

  [[nodiscard]] Status peer_status(Pe /*peer*/) const noexcept override { return Status::Ok; }

 private:
  [[nodiscard]] std::byte* view(Pe peer, RemoteAddress address) const {
    return bases_[peer.value] + address.offset.value;
  }

  std::vector<std::byte*> bases_;
};

}  // namespace weft::transport
