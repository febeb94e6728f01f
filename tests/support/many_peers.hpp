// One PE with a RailsTransport and any number of peers, which all stand behind the same simulated
// rails: what a peer costs in memory and time, without thousands of PEs. A peer here answers
// nothing by itself; the test sends in its name.
//
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>

#include "src/transport/operation.hpp"
#include "src/transport/rails/wire.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/raw_peer.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {

// What this process has allocated and not freed. 0 where a sanitizer has an allocator of its own.
inline std::size_t allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

class ManyPeers {
 public:
  static constexpr std::size_t kHeapBytes = 16384;

  ManyPeers(std::uint32_t peer_count,
            std::uint32_t rail_count,
            const transport::rails::RailsOptions& options = {})
      : network_(1, {.delay = 0, .depth = 4096}) {
    bootstrap::FieldWriter theirs;
    theirs.text("simulated").blob(std::vector<std::byte>()).u32(rail_count);
    transport::rails::RailsTransport::Rails ours;
    for (std::uint32_t i = 0; i < rail_count; ++i) {
      ours.push_back(network_.make_rail("nic"));
      rails_.push_back(network_.make_rail("raw"));
      const fabric::RegionKey heap = rails_.back()->add_region(memory_);
      theirs.blob(rails_.back()->address()).text("192.168.100." + std::to_string(i));
      theirs.u64(UINT64_MAX).u32(1).u64(heap.key.value).u64(heap.base);
    }
    for (Buffer& buffer : buffers_) {
      buffer.rail = static_cast<std::uint32_t>(&buffer - buffers_.data()) % rail_count;
      post(buffer);
    }
    pe_.counters.resize(rail_count);
    pe_.memory.resize(kHeapBytes);
    pe_.transport = std::make_unique<transport::rails::RailsTransport>(
        options, Pe(0), std::move(ours), std::vector<std::span<std::byte>>{pe_.memory}, 0);
    std::vector<bootstrap::Blob> blobs(peer_count + 1, theirs.bytes());
    blobs[0] = transport().describe();
    pe_.peer_counters.resize(std::size_t{peer_count + 1} * rail_count);
    std::vector<bool> reached(blobs.size(), true);
    reached[0] = false;
    const std::size_t before = allocated_bytes();
    transport().connect(blobs, reached);
    silent_bytes_ = allocated_bytes() - before;
    transport().count_in(
        {.rails = pe_.counters, .peers = pe_.peer_counters, .peer_rail_stride = rail_count});
  }

  [[nodiscard]] transport::rails::RailsTransport& transport() { return *pe_.transport; }

  // Allocated by connect, for all peers.
  [[nodiscard]] std::size_t silent_bytes() const { return silent_bytes_; }

  // A message of the peer arrives, its first or the one after the last: a signal with 8 bytes.
  void hear_from(Pe peer) {
    Sent& sent = sent_[peer.value];
    MessageWriter message({.source_pe = peer.value,
                           .batch_sequence = sent.batches++,
                           .applied_floor = sent.acknowledged,
                           .batch_floor = sent.acknowledged});
    const std::uint64_t data = peer.value;
    message.add(transport::rails::UpdateFrame{.kind = transport::rails::FrameKind::EagerSignal,
                                              .element_bytes = 8,
                                              .sequence = sent.operations++,
                                              .count = sizeof(data),
                                              .offset = 64,
                                              .operand = 1,
                                              .data_offset = 128},
                std::as_bytes(std::span(&data, 1)));
    send(message.bytes(), peer);
  }

  // The peer acknowledges the first `count` messages of one operation each.
  void acknowledge(Pe peer, std::uint32_t count) {
    sent_[peer.value].acknowledged = count;
    send(MessageWriter({.source_pe = peer.value, .applied_floor = count, .batch_floor = count})
             .bytes(),
         peer);
  }

  // 8 bytes and a signal.
  [[nodiscard]] Status put_signal(Pe peer) {
    return transport().post({.kind = transport::OperationKind::PutSignal,
                             .peer = peer,
                             .remote = {RegionIndex(0), HeapOffset(128)},
                             .local = source_.data(),
                             .bytes = sizeof(std::uint64_t),
                             .update = {.code = transport::AtomicCode::Add,
                                        .word = {RegionIndex(0), HeapOffset(64)},
                                        .operand = 1},
                             .counter = &counter});
  }

  void progress(int passes = 1) {
    for (int i = 0; i < passes; ++i) {
      transport().progress();
      poll();
    }
  }

  transport::OperationCounter counter;

 private:
  struct Buffer : fabric::PostContext {
    std::array<std::byte, transport::rails::kBatchBytes> memory{};
    std::uint32_t rail = 0;
  };

  struct Sent {
    std::uint32_t batches = 0;
    std::uint32_t operations = 0;
    std::uint32_t acknowledged = 0;
  };

  void post(Buffer& buffer) {
    static_cast<void>(
        rails_[buffer.rail]->post_receive({buffer.memory.data(), buffer.memory.size()}, &buffer));
  }

  // Returns when it has arrived.
  void send(std::vector<std::byte> message, Pe peer) {
    const RailIndex index(peer.value % static_cast<std::uint32_t>(rails_.size()));
    fabric::Rail& rail = *rails_[index.value];
    const fabric::PeerHandle ours = rail.add_peer(transport().rail(index).address());
    is_sending_ = true;
    static_cast<void>(rail.post_send({message.data(), message.size()}, ours, &sending_));
    while (is_sending_) {
      progress();
    }
    progress();
  }

  void poll() {
    std::array<fabric::Event, 64> events;
    for (const auto& rail : rails_) {
      const std::size_t count = rail->poll(events);
      for (std::size_t i = 0; i < count; ++i) {
        if (events[i].kind == fabric::EventKind::Received) {
          post(static_cast<Buffer&>(*events[i].context));
        } else if (events[i].context == &sending_) {
          is_sending_ = false;
        }
      }
    }
  }

  SimulatedNetwork network_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kHeapBytes);
  std::array<std::byte, 64> source_{};
  std::vector<std::unique_ptr<fabric::Rail>> rails_;
  std::array<Buffer, 256> buffers_;
  fabric::PostContext sending_;
  bool is_sending_ = false;
  std::vector<Sent> sent_ = std::vector<Sent>(1U << 16U);
  RailsPe pe_;
  std::size_t silent_bytes_ = 0;
};

}  // namespace weft::test
