// PEs of the NVSHMEM plugin as threads of one process, without the host library: each has a
// Session over simulated NICs and a symmetric heap of guarded memory, which stands for a GPU's.
//
// Threads: one for each PE; what they share is locked here.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/plugins/nvshmem/session.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {

namespace plugin = plugins::nvshmem;

// Allgathers among the threads.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}

  void gather(int pe, const void* mine, void* all, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    blob_.resize(static_cast<std::size_t>(count_) * bytes);
    std::memcpy(blob_.data() + static_cast<std::size_t>(pe) * bytes, mine, bytes);
    step(lock);
    std::memcpy(all, blob_.data(), blob_.size());
    step(lock);
  }

  void meet() {
    std::unique_lock lock(mutex_);
    step(lock);
  }

  // The same in two parts; the second is asked until it is true.
  [[nodiscard]] std::uint64_t arrive() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t round = round_;
    count_one();
    return round;
  }

  [[nodiscard]] bool has_passed(std::uint64_t round) {
    const std::lock_guard lock(mutex_);
    return round_ != round;
  }

 private:
  void step(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t round = round_;
    count_one();
    changed_.wait(lock, [&] { return round_ != round; });
  }

  void count_one() {
    if (++here_ == count_) {
      here_ = 0;
      ++round_;
      changed_.notify_all();
    }
  }

  int count_;
  int here_ = 0;
  std::uint64_t round_ = 0;
  std::vector<std::byte> blob_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

// What CUDA would say of guarded memory.
class GuardedMemories final : public plugin::GpuMemories {
 public:
  explicit GuardedMemories(std::shared_ptr<GuardedWords> words) : words_(std::move(words)) {}

  std::optional<plugin::GpuMemory> find(std::span<std::byte> memory) override {
    if (GuardedMemory::find(memory.data()) == nullptr) {
      return std::nullopt;
    }
    return plugin::GpuMemory{.memory = {.memory = memory, .no_dma_buf = "it is the host's"},
                             .pages = {},
                             .words = words_};
  }

 private:
  std::shared_ptr<GuardedWords> words_;
};

struct SessionsOptions {
  int pe_count = 3;
  std::size_t chunk_bytes = std::size_t{1} << 20U;
  std::size_t chunk_count = 2;
  NetworkFaults faults;
  bool nics_reach_gpus = true;
};

// One PE, as the test's body sees it. Offsets are of the heap; a chunk starts at each multiple of
// its size.
class SessionPe {
 public:
  SessionPe(int pe, const SessionsOptions& options, Meeting& meeting, SimulatedNetwork& network)
      : pe_(pe),
        options_(options),
        meeting_(meeting),
        host_{.version = 30000,
              .pe = pe,
              .pe_count = options.pe_count,
              .node_pe = pe,
              .node_pe_count = options.pe_count,
              .allgather = gather,
              .alltoall = nullptr,
              .barrier = meet_host,
              .global_exit = nullptr,
              .finalize = nullptr,
              .show_info = nullptr,
              .init_operations = nullptr,
              .state = this},
        session_(host_,
                 {.gpus = std::make_unique<GuardedMemories>(words_),
                  .load_settings = [] { return load_config(nothing_set); },
                  .open_rails = [&](const auto& site) { return open_rails(site, network); }}) {}

  // Collective.
  void add_chunk() {
    chunks_.push_back(std::make_unique<GuardedMemory>(options_.chunk_bytes));
    Handles& handles = *handles_.emplace_back(
        std::make_unique<Handles>(static_cast<std::size_t>(options_.pe_count)));
    std::vector<std::byte*> bases(handles.size());
    std::byte* base = chunks_.back()->memory().data();
    plugin::MemoryHandle mine{};
    session_.add_chunk(mine, chunks_.back()->memory(), base);
    meeting_.gather(pe_, &mine, handles.data(), sizeof(mine));
    meeting_.gather(pe_, &base, bases.data(), sizeof(base));
    bases_.push_back(std::move(bases));
  }

  [[nodiscard]] int pe() const { return pe_; }

  [[nodiscard]] int pe_count() const { return options_.pe_count; }

  [[nodiscard]] int next() const { return (pe_ + 1) % options_.pe_count; }

  [[nodiscard]] int previous() const { return (pe_ + options_.pe_count - 1) % options_.pe_count; }

  [[nodiscard]] plugin::Session& session() { return session_; }

  // With progress meanwhile, as the host's proxy makes it once it has begun.
  void meet() {
    const std::uint64_t round = meeting_.arrive();
    while (!meeting_.has_passed(round)) {
      session_.progress();
      std::this_thread::yield();
    }
  }

  // As NVSHMEM names it; nobody may touch it.
  [[nodiscard]] std::byte* at(std::uint64_t offset) const {
    return chunks_[offset / options_.chunk_bytes]->memory().data() + offset % options_.chunk_bytes;
  }

  [[nodiscard]] plugin::MemoryDescription on(int pe, std::uint64_t offset) {
    const std::size_t chunk = offset / options_.chunk_bytes;
    const auto index = static_cast<std::size_t>(pe);
    return {.address = bases_[chunk][index] + offset % options_.chunk_bytes,
            .offset = offset,
            .handle = &(*handles_[chunk])[index]};
  }

  [[nodiscard]] GuardedWords& words() { return *words_; }

  template <typename Word = std::uint64_t>
  [[nodiscard]] Word word(std::uint64_t offset) {
    Word value{};
    words_->read(&value, at(offset), sizeof(value));
    return value;
  }

  template <typename Word>
  void set_word(std::uint64_t offset, Word value) {
    words_->write(at(offset), &value, sizeof(value));
  }

  // Makes progress as the host's proxy does.
  void wait_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      session_.progress();
      std::this_thread::yield();
    }
    EXPECT_TRUE(condition());
  }

 private:
  static std::optional<std::string> nothing_set(std::string_view /*name*/) { return std::nullopt; }

  std::unique_ptr<transport::rails::RailsTransport> open_rails(
      const transport::opening::JobSite& site, SimulatedNetwork& network) const {
    transport::rails::RailsTransport::Rails rails;
    for (const char* nic : {"nic0", "nic1"}) {
      auto rail = network.make_rail(nic, options_.nics_reach_gpus);
      std::size_t index = 0;
      std::memcpy(&index, rail->address().data(), sizeof(index));
      rails.push_back(std::make_unique<GuardedRail>(
          std::move(rail), [&network, index] { network.close(index); }));  // before its buffers go
    }
    return std::make_unique<transport::rails::RailsTransport>(transport::rails::RailsOptions{},
                                                              site.bootstrap.pe(), std::move(rails),
                                                              site.regions, site.probe_offset);
  }

  using Handles = std::vector<plugin::MemoryHandle>;

  static int gather(const void* mine, void* all, int bytes, plugin::HostBootstrap* host) {
    auto& self = *static_cast<SessionPe*>(host->state);
    self.meeting_.gather(self.pe_, mine, all, static_cast<std::size_t>(bytes));
    return 0;
  }

  static int meet_host(plugin::HostBootstrap* host) {
    static_cast<SessionPe*>(host->state)->meeting_.meet();
    return 0;
  }

  int pe_;
  const SessionsOptions& options_;
  Meeting& meeting_;
  plugin::HostBootstrap host_;
  std::shared_ptr<GuardedWords> words_ = std::make_shared<GuardedWords>();
  std::vector<std::unique_ptr<GuardedMemory>> chunks_;  // outlive the session
  std::vector<std::unique_ptr<Handles>> handles_;
  std::vector<std::vector<std::byte*>> bases_;
  plugin::Session session_;
};

// Runs the body on all PEs at once. It must not leave early where others wait.
inline void run_sessions(const SessionsOptions& options,
                         const std::function<void(SessionPe&)>& body) {
  Meeting meeting(options.pe_count);
  SimulatedNetwork network(5, options.faults);
  std::vector<std::thread> threads;
  for (int pe = 0; pe < options.pe_count; ++pe) {
    threads.emplace_back([&, pe] {
      SessionPe self(pe, options, meeting, network);
      for (std::size_t chunk = 0; chunk < options.chunk_count; ++chunk) {
        self.add_chunk();
      }
      body(self);
      self.meet();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace weft::test
