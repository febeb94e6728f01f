// A GPU made of threads, for tests of the proxy: its memory is host memory that only the fake
// copier and the fake GPU threads touch. Delays come by seed.
//
// FakeCopier and FakeApplier are the proxy's seams; GpuThread does what device code does.
#pragma once

#include <weft/device/command_views.hpp>
#include <weft/device/inbox.hpp>
#include <weft/device/list.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/proxy/copier.hpp"
#include "src/proxy/ring_memory.hpp"
#include "src/transport/atomic_update.hpp"
#include "tests/support/host_ring.hpp"

namespace weft::test {

// What the inbox's commands do to "GPU" memory.
struct ApplyToHost {
  template <typename Lanes>
  void copy(const Lanes& /*lanes*/,
            const device::SlotWords& arrived,
            const std::byte* payload,
            std::uint32_t bytes) const {
    if (bytes != 0) {
      std::memcpy(reinterpret_cast<void*>(device::InboxPut::from(arrived).dest_address), payload,
                  bytes);
    }
  }

  [[nodiscard]] std::uint64_t update(const device::SlotWords& arrived) const {
    const device::Command command = device::decode(arrived);
    if (command.kind == device::CommandKind::Put) {
      return 0;
    }
    const device::InboxUpdate update = device::InboxUpdate::from(command);
    return transport::apply_atomic(
        reinterpret_cast<void*>(update.word_address),
        transport::AtomicUpdate{.code = static_cast<transport::AtomicCode>(update.op),
                                .element_bytes = update.element_bytes,
                                .word = {},
                                .operand = update.operand,
                                .compare = update.compare});
  }
};

using HostInbox = device::InboxConsumer<proxy::HostMemory, ApplyToHost>;

// Returns the number of commands applied.
inline std::uint32_t drain(const device::RingView& inbox, std::uint32_t count_max = ~0U) {
  return HostInbox(inbox).drain(device::OneLane{}, count_max);
}

class FakeCopier final : public proxy::Copier {
 public:
  // `delay_us_max` 0: no delays.
  FakeCopier(std::uint64_t seed, std::uint32_t delay_us_max) {
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      engines_[i].random.seed(seed + i);
      engines_[i].delay_us_max = delay_us_max;
      engines_[i].thread = std::thread([this, i] { run(engines_[i]); });
    }
  }

  ~FakeCopier() override {
    for (CopyEngine& engine : engines_) {
      {
        const std::lock_guard lock(engine.mutex);
        engine.stop = true;
      }
      engine.changed.notify_all();
      engine.thread.join();
    }
  }

  Ticket copy(proxy::CopyDirection direction,
              void* dest,
              const void* source,
              std::size_t bytes) noexcept override {
    CopyEngine& engine = engines_[static_cast<std::size_t>(direction)];
    const std::lock_guard lock(engine.mutex);
    if (failure() != nullptr) {
      return ++engine.issued;
    }
    engine.copies.push_back({dest, source, bytes});
    engine.changed.notify_all();
    return ++engine.issued;
  }

  // Copies that are started from now on are never done.
  void fail(const std::string& why) {
    why_ = why;
    // SYNC ring-word (pairs with failure below): the text.
    AtomicRef(has_failed_).store(true, std::memory_order_release);
  }

  [[nodiscard]] const std::string* failure() const noexcept override {
    // SYNC ring-word (pairs with fail above): the text.
    return AtomicRef(has_failed_).load(std::memory_order_acquire) ? &why_ : nullptr;
  }

  [[nodiscard]] bool is_done(proxy::CopyDirection direction, Ticket ticket) noexcept override {
    return proxy::HostMemory::load_far(&engines_[static_cast<std::size_t>(direction)].done) >=
           ticket;
  }

 private:
  struct Copy {
    void* dest;
    const void* source;
    std::size_t bytes;
  };

  struct CopyEngine {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Copy> copies;
    std::mt19937_64 random;
    std::uint32_t delay_us_max = 0;
    std::uint64_t issued = 0;
    std::uint64_t done = 0;
    bool stop = false;
    std::thread thread;
  };

  static void run(CopyEngine& engine) {
    while (true) {
      Copy copy{};
      {
        std::unique_lock lock(engine.mutex);
        engine.changed.wait(lock, [&] { return engine.stop || !engine.copies.empty(); });
        if (engine.copies.empty()) {
          return;
        }
        copy = engine.copies.front();
        engine.copies.pop_front();
      }
      if (engine.delay_us_max > 0 && engine.random() % 4 == 0) {
        std::this_thread::sleep_for(
            std::chrono::microseconds(engine.random() % engine.delay_us_max));
      }
      std::memcpy(copy.dest, copy.source, copy.bytes);
      proxy::HostMemory::store_far(&engine.done, engine.done + 1);
    }
  }

  std::array<CopyEngine, 2> engines_;
  std::string why_;
  mutable bool has_failed_ = false;
};

class FakeApplier final : public proxy::Applier {
 public:
  FakeApplier(const device::RingView& inbox, std::uint64_t seed, std::uint32_t delay_us_max)
      : inbox_(inbox), random_(seed), delay_us_max_(delay_us_max), thread_([this] { run(); }) {}

  ~FakeApplier() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void wake_applier() noexcept override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

 private:
  void run() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || woken_; });
        if (stop_) {
          return;
        }
        woken_ = false;
      }
      if (delay_us_max_ > 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % delay_us_max_));
      }
      inbox_.drain(device::OneLane{}, ~0U);
    }
  }

  HostInbox inbox_;
  std::mt19937_64 random_;
  std::uint32_t delay_us_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stop_ = false;
  std::thread thread_;
};

// What one GPU thread does with one of its PE's command rings.
class GpuThread {
 public:
  // `heap`: of its own PE; addresses in it stand for symmetric ones.
  GpuThread(const device::RingView& ring, const device::RingView& inbox, std::byte* heap)
      : view_(ring), ring_(ring), inbox_(inbox), heap_(heap) {}

  // Puts in-slot payload where it fits and `in_slot` says so.
  std::uint64_t put(void* dest, const void* source, std::size_t bytes, Pe pe, bool in_slot = true) {
    return issue(with_data(device::CommandKind::Put, dest, source, bytes, pe, in_slot), source);
  }

  std::uint64_t put_signal(void* dest,
                           const void* source,
                           std::size_t bytes,
                           std::uint64_t* word,
                           std::uint64_t value,
                           Pe pe) {
    device::Command command =
        with_data(device::CommandKind::PutSignal, dest, source, bytes, pe, true);
    device::WordUpdate{.word_offset = offset_of(word), .operand = value}.write_to(command);
    return issue(command, source);
  }

  struct Segment {
    void* dest;
    const void* source;
    std::size_t bytes;
  };

  // As many commands as the list needs; `word`, unless null, is set to `value` after all of it.
  // Returns the last one's position.
  std::uint64_t putv(std::span<const Segment> segments,
                     std::uint64_t* word,
                     std::uint64_t value,
                     Pe pe,
                     bool wants_reply = false) {
    std::uint64_t position = 0;
    do {
      alignas(16) std::array<std::byte, device::kPayloadBytes> payload{};
      const std::size_t taken = fill_list(payload.data(), segments);
      segments = segments.subspan(taken);
      device::Command command;
      command.kind = device::CommandKind::PutList;
      command.flags = device::kPayloadInSlot;
      command.pe = pe.value;
      device::PutListCommand{.entry_count = taken}.write_to(command);
      if (segments.empty() && word != nullptr) {
        command.flags |= device::kSignalAfter;
        device::WordUpdate{.word_offset = offset_of(word), .operand = value}.write_to(command);
      }
      if (segments.empty() && wants_reply) {
        command.flags |= device::kReplyWanted;
      }
      position = issue(command, payload.data());
    } while (!segments.empty());
    return position;
  }

  std::uint64_t signal_add(std::uint64_t* word, std::uint64_t value, Pe pe) {
    device::Command command;
    command.kind = device::CommandKind::Signal;
    command.pe = pe.value;
    device::WordUpdate{
        .word_offset = offset_of(word), .operand = value, .op = device::AtomicOp::Add}
        .write_to(command);
    return issue(command);
  }

  // Returns when `dest` has the data.
  void get(void* dest, const void* source, std::size_t bytes, Pe pe) {
    device::Command command;
    command.kind = device::CommandKind::Get;
    command.flags = device::kReplyWanted;
    command.pe = pe.value;
    device::GetCommand{.dest_address = reinterpret_cast<std::uint64_t>(dest),
                       .source_offset = offset_of(source),
                       .bytes = bytes}
        .write_to(command);
    static_cast<void>(reply_of(issue(command)));
  }

  std::uint64_t fetch(void* word,
                      std::uint8_t element_bytes,
                      device::AtomicOp op,
                      std::uint64_t operand,
                      std::uint64_t compare,
                      Pe pe) {
    device::Command command;
    command.kind = device::CommandKind::Atomic;
    command.flags = device::kReplyWanted;
    command.pe = pe.value;
    device::WordUpdate{.word_offset = offset_of(word),
                       .operand = operand,
                       .compare = compare,
                       .op = op,
                       .element_bytes = element_bytes}
        .write_to(command);
    return reply_of(issue(command));
  }

  std::uint64_t fence() {
    device::Command command;
    command.kind = device::CommandKind::Fence;
    return issue(command);
  }

  // As device code: of all rings, of which this is number `own`.
  std::uint64_t fence(std::span<const device::RingView> rings, std::uint32_t own) {
    device::AwaitCommand others;
    for (std::uint32_t ring = 0; ring < rings.size() && ring < device::kAwaitedRings; ++ring) {
      others.ring_positions[ring] =
          ring == own ? 0 : proxy::HostMemory::load_near(rings[ring].head());
    }
    device::Command command;
    command.kind = device::CommandKind::Await;
    others.write_to(command);
    issue(command);
    return fence();
  }

  // `payload`: what goes into the slot's payload area, if the command says so.
  std::uint64_t issue(const device::Command& command, const void* payload = nullptr) {
    const std::uint64_t position = ring_.claim();
    ring_.wait_for_room(position, [this] { idle(); });
    if (const std::size_t bytes = device::payload_bytes(command); bytes != 0) {
      std::memcpy(ring_.payload(position), payload, bytes);
    }
    ring_.publish(position, command);
    return position;
  }

  std::uint64_t reply_of(std::uint64_t position) {
    return ring_.wait_reply(position, [this] { idle(); });
  }

  void quiet() {
    const std::uint64_t head = proxy::HostMemory::load_near(view_.head());
    while (proxy::HostMemory::load_far(view_.completed()) < head) {
      idle();
    }
  }

  void wait_until_at_least(std::uint64_t* word, std::uint64_t value) {
    while (proxy::HostMemory::load_far(word) < value) {
      idle();
    }
  }

  // What every waiting loop does.
  void idle() {
    if (inbox_.drain(device::OneLane{}, 16) == 0) {
      std::this_thread::yield();
    }
  }

 private:
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - heap_);
  }

  // How many of the segments have room in one payload.
  std::size_t fill_list(std::byte* payload, std::span<const Segment> segments) const {
    device::ListWalk walk;
    for (const Segment& segment : segments) {
      if (!walk.add(segment.bytes)) {
        break;
      }
      const device::ListEntry entry{.dest = offset_of(segment.dest),
                                    .source = reinterpret_cast<std::uint64_t>(segment.source),
                                    .bytes = segment.bytes};
      std::memcpy(payload + (walk.count - 1) * sizeof(entry), &entry, sizeof(entry));
      if (device::ListWalk::is_carried(segment.bytes) && segment.bytes != 0) {
        std::memcpy(payload + walk.data, segment.source, segment.bytes);
      }
    }
    return walk.count;
  }

  [[nodiscard]] device::Command with_data(device::CommandKind kind,
                                          void* dest,
                                          const void* source,
                                          std::size_t bytes,
                                          Pe pe,
                                          bool in_slot) const {
    device::Command command;
    command.kind = kind;
    command.flags = in_slot && bytes <= device::kPayloadBytes ? device::kPayloadInSlot : 0;
    command.pe = pe.value;
    device::PutCommand{.dest_offset = offset_of(dest),
                       .source_address = reinterpret_cast<std::uint64_t>(source),
                       .bytes = bytes}
        .write_to(command);
    return command;
  }

  device::RingView view_;
  device::RingProducer<proxy::HostMemory> ring_;
  HostInbox inbox_;
  std::byte* heap_;
};

}  // namespace weft::test
