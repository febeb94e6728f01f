// Numbered put_signals between all PEs of a job at once, every byte of which is checked when its
// signal is seen. The proxy threads send; the main threads check, and acknowledge over the
// transport.
//
// Threads: made and run by the main thread of a PE.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/plugins/nvshmem/fake_host.hpp"

namespace weft::plugins::nvshmem {

class NumberedMessages {
 public:
  static constexpr std::uint64_t kSlots = 64;  // in flight to a peer
  static constexpr std::size_t kSlotBytes = 16384;

  // Options of a job that can hold them; at most four PEs.
  static HostOptions options(int interface, int pe_count, const Nics* nics);

  // `count` to each other PE.
  NumberedMessages(FakeHost& host, std::uint64_t count);

  // All PEs call it; returns when all messages to this PE have been checked and those of this PE
  // acknowledged. `seen` is called after each, with how many there were from PE `source`.
  void run(const std::function<void(int source, std::uint64_t number)>& seen = nullptr);

  // Signals that were seen before their data.
  [[nodiscard]] std::uint64_t early_count() const { return early_count_; }

 private:
  void send_all(Operations& proxy);
  [[nodiscard]] bool send_next(Operations& proxy, int peer);
  [[nodiscard]] bool check_next(int source);
  void acknowledge(int source);

  FakeHost& host_;
  std::uint64_t count_;
  std::array<std::uint64_t, kPesMax> sent_{};     // to each; the proxy thread's
  std::array<std::uint64_t, kPesMax> checked_{};  // from each
  std::uint64_t early_count_ = 0;
  std::vector<std::byte> expected_;
};

}  // namespace weft::plugins::nvshmem
