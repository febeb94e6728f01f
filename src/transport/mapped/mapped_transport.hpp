// The Transport to memory that is mapped here: loads, stores and CPU atomics, complete when post
// returns. rma posts here the operations that the fast path of the C interface (api/fast_path.hpp)
// did not handle; both call the same functions of copy.hpp and atomics.hpp.
//
// Threads: any. Each place names its mapping; peers exchange no data, and there is nothing to do
// when a region is added or removed.
#pragma once

#include <span>
#include <vector>

#include "src/transport/transport.hpp"

namespace weft::transport {

class MappedTransport final : public Transport {
 public:
  // Whether all memory that the operation accesses on its peer is mapped here.
  [[nodiscard]] static bool reaches(const Operation& operation) {
    const bool has_data = operation.kind != OperationKind::Atomic;
    const bool has_word = operation.kind == OperationKind::PutSignal || !has_data;
    return (!has_data || operation.remote.mapped != nullptr) &&
           (!has_word || operation.update.word.mapped != nullptr);
  }

  [[nodiscard]] bootstrap::Blob describe() const override { return {}; }

  void connect(const std::vector<bootstrap::Blob>& /*connection_data*/,
               const std::vector<bool>& /*reached*/) override {}

  [[nodiscard]] bootstrap::Blob add_region(RegionIndex /*index*/,
                                           std::span<std::byte> /*memory*/) override {
    return {};
  }

  void connect_region(RegionIndex /*index*/,
                      const std::vector<bootstrap::Blob>& /*region_data*/) override {}

  void remove_region(RegionIndex /*index*/) override {}

  // Never returns Again, since there is no queue. Accepts only operations that it reaches.
  Status post(const Operation& operation) noexcept override;

  void flush(Pe /*peer*/) noexcept override {}

  bool progress() noexcept override { return false; }

  bool wait_for_event(std::uint32_t timeout_us) noexcept override;

  [[nodiscard]] Status peer_status(Pe /*peer*/) const noexcept override { return Status::Ok; }
};

}  // namespace weft::transport
