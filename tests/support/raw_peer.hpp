// A PE without a transport, on a simulated network: a test writes what it likes into messages, and
// reads what comes back. For all that a PE of the same job must survive from another.
//
// One thread. What is sent stays in memory here until the peer ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/bootstrap/frame.hpp"
#include "src/transport/rails/frame_check.hpp"
#include "src/transport/rails/wire.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {

// One message; the header's sizes are those of what was added, the rest is the test's.
class MessageWriter {
 public:
  explicit MessageWriter(const transport::rails::BatchHeader& header) : bytes_(sizeof(header)) {
    header_ = header;
    header_.bytes = sizeof(header);
  }

  template <transport::rails::FrameView View>
  MessageWriter& add(const View& frame, std::span<const std::byte> data = {}) {
    const auto* first = reinterpret_cast<const std::byte*>(&frame);
    bytes_.insert(bytes_.end(), first, first + sizeof(frame));
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    bytes_.resize(bytes_.size() + transport::rails::padded(data.size()) - data.size());
    header_.bytes = static_cast<std::uint32_t>(bytes_.size());
    ++header_.frame_count;
    return *this;
  }

  [[nodiscard]] transport::rails::BatchHeader& header() { return header_; }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = bytes_;
    std::memcpy(all.data(), &header_, sizeof(header_));
    return all;
  }

 private:
  transport::rails::BatchHeader header_;
  std::vector<std::byte> bytes_;
};

class RawPeer {
 public:
  RawPeer(SimulatedNetwork& network, Pe me) : rail_(network.make_rail("raw")), me_(me) {
    static_cast<void>(rail_->add_region(heap_));
    for (Buffer& buffer : buffers_) {
      post(buffer);
    }
  }

  // As RailsTransport::describe, with one rail and one region.
  [[nodiscard]] bootstrap::Blob describe() const {
    bootstrap::FieldWriter writer;
    writer.text(rail_->provider());
    writer.blob(nonce);
    writer.u32(1);
    writer.blob(rail_->address());
    writer.text("raw0");
    writer.u64(UINT64_MAX).u32(1).u64(1).u64(0);  // immediate data, regions, key, base
    return writer.bytes();
  }

  // The rail of the peer that everything goes to.
  void connect(const fabric::Rail& rail) { target_ = rail_->add_peer(rail.address()); }

  [[nodiscard]] MessageWriter message(std::uint32_t batch_sequence) const {
    return MessageWriter({.source_pe = me_.value, .batch_sequence = batch_sequence});
  }

  void send(std::vector<std::byte> message) {
    sent_.push_back(std::move(message));
    contexts_.emplace_back();
    while (rail_->post_send({sent_.back().data(), sent_.back().size()}, target_,
                            &contexts_.back()) == fabric::PostResult::Full) {
      while_full();
    }
  }

  // Not empty: it claims to sign its messages, which is the test's to do.
  std::vector<std::byte> nonce;

  // What makes room: the whole scene's progress.
  std::function<void()> while_full = [this] { poll(); };

  // A piece without bytes.
  void send_immediate(std::uint32_t immediate) {
    while (rail_->post_write({heap_.data(), 0}, {target_, 0, RemoteKey(1)}, immediate, &piece_) ==
           fabric::PostResult::Full) {
      while_full();
    }
  }

  void poll() {
    std::array<fabric::Event, 16> events;
    const std::size_t count = rail_->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      const fabric::Event& event = events[i];
      if (event.kind == fabric::EventKind::Received) {
        auto& buffer = static_cast<Buffer&>(*event.context);
        read({buffer.memory.data(), event.bytes});
        post(buffer);
      }
    }
  }

  // All frames that came, in order; and all messages that went.
  [[nodiscard]] const std::vector<transport::rails::Frame>& received() const { return received_; }

  [[nodiscard]] const std::deque<std::vector<std::byte>>& sent() const { return sent_; }

 private:
  struct Buffer : fabric::PostContext {
    std::vector<std::byte> memory = std::vector<std::byte>(transport::rails::kBatchBytes);
  };

  void post(Buffer& buffer) {
    static_cast<void>(rail_->post_receive({buffer.memory.data(), buffer.memory.size()}, &buffer));
  }

  void read(std::span<const std::byte> message) {
    transport::rails::BatchReader reader(message.subspan(sizeof(transport::rails::BatchHeader)));
    while (const auto frame = reader.next()) {
      received_.push_back(frame->frame);
    }
  }

  std::vector<std::byte> heap_ = std::vector<std::byte>(16384);
  std::unique_ptr<fabric::Rail> rail_;
  Pe me_;
  fabric::PeerHandle target_;
  std::array<Buffer, 16> buffers_;
  std::deque<std::vector<std::byte>> sent_;
  std::deque<fabric::PostContext> contexts_;
  fabric::PostContext piece_;
  std::vector<transport::rails::Frame> received_;
};

// PE 0 is under test, PE 1 is raw, PE 2 is as it should be. PE 0's heap lies between guards.
class RawScene {
 public:
  static constexpr std::size_t kHeapBytes = 16384;
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr std::byte kGuard{0xA7};
  static constexpr Pe kRaw{1};
  static constexpr Pe kHealthy{2};

  explicit RawScene(std::uint64_t seed,
                    NetworkFaults faults = {.delay = 0.1},
                    const transport::rails::RailsOptions& options = {})
      : network_(seed, faults), raw_(network_, kRaw) {
    std::vector<bootstrap::Blob> blobs(3);
    raw_.nonce.resize(options.secret ? sizeof(transport::rails::SealNonce) : 0);
    for (const std::uint32_t pe : {0U, 2U}) {
      RailsPe& made = *pes_.emplace_back(std::make_unique<RailsPe>());
      made.memory.assign(kHeapBytes + 2 * kGuardBytes, kGuard);
      std::fill_n(made.memory.begin() + kGuardBytes, kHeapBytes, std::byte{0});
      transport::rails::RailsTransport::Rails rails;
      rails.push_back(network_.make_rail("nic"));
      made.counters.resize(1);
      made.transport = std::make_unique<transport::rails::RailsTransport>(
          options, Pe(pe), std::move(rails),
          std::vector<std::span<std::byte>>{{made.memory.data() + kGuardBytes, kHeapBytes}}, 0);
      blobs[pe] = made.transport->describe();
    }
    blobs[kRaw.value] = raw_.describe();
    victims_words_ = blobs[0];
    for (std::size_t i = 0; i < pes_.size(); ++i) {
      std::vector<bool> reached(3, true);
      reached[2 * i] = false;
      pes_[i]->transport->connect(blobs, reached);
      count_in(*pes_[i]->transport, 3, pes_[i]->counters, pes_[i]->peer_counters);
    }
    raw_.connect(victim().rail(RailIndex(0)));
    raw_.while_full = [this] { progress(); };
  }

  [[nodiscard]] transport::rails::RailsTransport& victim() { return *pes_[0]->transport; }

  [[nodiscard]] transport::rails::RailsTransport& healthy() { return *pes_[1]->transport; }

  [[nodiscard]] RawPeer& raw() { return raw_; }

  // Of PE 0's heap, or PE 2's.
  [[nodiscard]] std::uint64_t& word(std::uint64_t offset, Pe pe = Pe(0)) {
    return *pes_[pe.value / 2]->word(kGuardBytes + offset);
  }

  // What PE 0 told the others before the job began.
  [[nodiscard]] const bootstrap::Blob& victims_words() const { return victims_words_; }

  // Everything makes progress, until `done` or too often.
  bool progress_until(const std::function<bool()>& done, std::uint64_t passes = 2'000'000) {
    for (std::uint64_t i = 0; i < passes && !done(); ++i) {
      progress();
    }
    return done();
  }

  void progress(int passes = 1) {
    for (int i = 0; i < passes; ++i) {
      victim().progress();
      healthy().progress();
      raw_.poll();
    }
  }

  [[nodiscard]] bool are_guards_whole() const {
    const auto is_whole = [](const std::byte* first) {
      return std::all_of(first, first + kGuardBytes, [](std::byte one) { return one == kGuard; });
    };
    const std::byte* memory = pes_[0]->memory.data();
    return is_whole(memory) && is_whole(memory + kGuardBytes + kHeapBytes);
  }

  // PE 0 adds one to a word of `peer`; with `result`, it fetches.
  [[nodiscard]] Status add(Pe peer,
                           transport::OperationCounter& counter,
                           std::uint64_t* result = nullptr) {
    return victim().post({.kind = transport::OperationKind::Atomic,
                          .peer = peer,
                          .update = {.code = transport::AtomicCode::Add,
                                     .word = {RegionIndex(0), HeapOffset(128)},
                                     .operand = 1},
                          .result = result,
                          .counter = &counter});
  }

 private:
  SimulatedNetwork network_;
  RawPeer raw_;
  std::vector<std::unique_ptr<RailsPe>> pes_;
  bootstrap::Blob victims_words_;
};

}  // namespace weft::test
