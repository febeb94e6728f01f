// Several transports as one: each peer has its own. What rma holds where some peers are reached by
// cross-memory attach and others over rails.
//
// Threads: any, as each transport; the table is constant.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/transport/transport.hpp"

namespace weft::transport {

class ByPeer final : public Transport {
 public:
  // `near` reaches the peers for which `is_near` holds, `far` the others.
  ByPeer(Transport& near, Transport& far, const std::vector<bool>& is_near)
      : near_(near), far_(far) {
    for (const bool one : is_near) {
      by_pe_.push_back(one ? &near : &far);
    }
  }

  Status post(const Operation& operation) noexcept override {
    return by_pe_[operation.peer.value]->post(operation);
  }

  void flush(Pe peer) noexcept override { by_pe_[peer.value]->flush(peer); }

  bool progress() noexcept override {
    const bool near = near_.progress();
    return far_.progress() || near;
  }

  // Events of the two cannot be waited for together: sleeps on the far ones, and looks at the near ones
  // often.
  bool wait_for_event(std::uint32_t timeout_us) noexcept override {
    constexpr std::uint32_t kLookUs = 200;
    return far_.wait_for_event(std::min(timeout_us, kLookUs));
  }

  void begin_wait() noexcept override {
    near_.begin_wait();
    far_.begin_wait();
  }

  void end_wait() noexcept override {
    near_.end_wait();
    far_.end_wait();
  }

  void blame(Pe peer, std::string_view fault) noexcept override {
    by_pe_[peer.value]->blame(peer, fault);
  }

  [[nodiscard]] Status peer_status(Pe peer) const noexcept override {
    return by_pe_[peer.value]->peer_status(peer);
  }

 private:
  Transport& near_;
  Transport& far_;
  std::vector<Transport*> by_pe_;
};

}  // namespace weft::transport
