// Memory that stands for a GPU's, which the CPU must not touch: its addresses have no access, so
// that whoever forgets ends by a signal. A second mapping of the same pages is for what may reach
// it: the NICs (GuardedRail), WordMemory (GuardedWords), and the test.
//
// Threads: made and destroyed by any while no operation names it.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "src/fabric/rail.hpp"
#include "src/gpu/word_memory.hpp"

namespace weft::test {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) : bytes_(bytes) {
    const int file = ::memfd_create("guarded", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      throw std::runtime_error("no file in memory");
    }
    named_ = map(file, PROT_NONE);
    reached_ = map(file, PROT_READ | PROT_WRITE);
    ::close(file);
    const std::lock_guard lock(registry().mutex);
    registry().all.push_back(this);
  }

  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  ~GuardedMemory() {
    {
      const std::lock_guard lock(registry().mutex);
      std::erase(registry().all, this);
    }
    ::munmap(named_, bytes_);
    ::munmap(reached_, bytes_);
  }

  // Its addresses as programs and handles name them.
  [[nodiscard]] std::span<std::byte> memory() const { return {named_, bytes_}; }

  // The same bytes where they may be touched.
  [[nodiscard]] std::byte* reached(std::size_t offset = 0) const { return reached_ + offset; }

  // Any address: the same if it is not of such memory.
  [[nodiscard]] static std::byte* reached(const void* address) {
    const auto* named = static_cast<const std::byte*>(address);
    const GuardedMemory* found = find(address);
    return found != nullptr ? found->reached_ + (named - found->named_)
                            : const_cast<std::byte*>(named);
  }

  [[nodiscard]] static const GuardedMemory* find(const void* address) {
    const auto* named = static_cast<const std::byte*>(address);
    const std::lock_guard lock(registry().mutex);
    const auto found = std::ranges::find_if(registry().all, [&](const GuardedMemory* memory) {
      return named >= memory->named_ && named < memory->named_ + memory->bytes_;
    });
    return found == registry().all.end() ? nullptr : *found;
  }

 private:
  struct Registry {
    std::mutex mutex;
    std::vector<const GuardedMemory*> all;
  };

  static Registry& registry() {
    static Registry all;
    return all;
  }

  [[nodiscard]] std::byte* map(int file, int access) const {
    void* memory = ::mmap(nullptr, bytes_, access, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("mmap of guarded memory failed");
    }
    return static_cast<std::byte*>(memory);
  }

  std::size_t bytes_;
  std::byte* named_ = nullptr;
  std::byte* reached_ = nullptr;
};

// Counts what it is asked for. Its lock orders it with a test that reads by it.
class GuardedWords final : public gpu::WordMemory {
 public:
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t flushes = 0;
  };

  explicit GuardedWords(bool needs_old = true) : needs_old_(needs_old) {}

  void read(void* dest, const void* address, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    ++counts_.reads;
    std::memcpy(dest, GuardedMemory::reached(address), bytes);
  }

  void write(void* address, const void* source, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    ++counts_.writes;
    std::memcpy(GuardedMemory::reached(address), source, bytes);
  }

  void replace(void* address,
               std::size_t bytes,
               std::uint64_t /*old*/,
               std::uint64_t value) noexcept override {
    write(address, &value, bytes);
  }

  [[nodiscard]] bool needs_old() const noexcept override { return needs_old_; }

  void show_nic_writes() noexcept override {
    const std::lock_guard lock(mutex_);
    ++counts_.flushes;
  }

  [[nodiscard]] Counts counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  bool needs_old_;
  std::mutex mutex_;
  Counts counts_;
};

// A NIC that reaches guarded memory, as NICs reach a GPU's: where it is registered as a device
// region, and where an operation says `on_device`.
class GuardedRail final : public fabric::Rail {
 public:
  explicit GuardedRail(std::unique_ptr<fabric::Rail> inner, std::function<void()> on_end = {})
      : inner_(std::move(inner)), on_end_(std::move(on_end)) {}

  ~GuardedRail() override {
    if (on_end_) {
      on_end_();
    }
  }

  [[nodiscard]] const fabric::RailLimits& limits() const override { return inner_->limits(); }

  void restrict_to(const fabric::RailLimits& limits) noexcept override {
    inner_->restrict_to(limits);
  }

  [[nodiscard]] const std::string& nic() const override { return inner_->nic(); }

  [[nodiscard]] const std::string& address_text() const override { return inner_->address_text(); }

  [[nodiscard]] const std::string& provider() const override { return inner_->provider(); }

  [[nodiscard]] std::string protocol() const override { return inner_->protocol(); }

  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }

  [[nodiscard]] bool adds_peers_early() const override { return inner_->adds_peers_early(); }

  fabric::PeerHandle add_peer(std::span<const std::byte> address) override {
    return inner_->add_peer(address);
  }

  fabric::RegionKey add_region(std::span<std::byte> memory) override {
    return inner_->add_region(memory);
  }

  fabric::DeviceRegion add_device_region(const fabric::DeviceMemory& memory) override {
    fabric::DeviceMemory reached = memory;
    reached.memory = {GuardedMemory::reached(memory.memory.data()), memory.memory.size()};
    return inner_->add_device_region(reached);
  }

  void drop_region(std::span<std::byte> memory) noexcept override {
    inner_->drop_region({GuardedMemory::reached(memory.data()), memory.size()});
  }

  void keep_registered(std::span<std::byte> memory) noexcept override {
    inner_->keep_registered(memory);
  }

  fabric::PostResult post_write(const fabric::LocalMemory& source,
                                const fabric::RemoteMemory& dest,
                                std::optional<std::uint32_t> immediate,
                                fabric::PostContext* context) noexcept override {
    return inner_->post_write(reached(source), dest, immediate, context);
  }

  fabric::PostResult post_read(const fabric::LocalMemory& dest,
                               const fabric::RemoteMemory& source,
                               fabric::PostContext* context) noexcept override {
    return inner_->post_read(reached(dest), source, context);
  }

  fabric::PostResult post_send(const fabric::LocalMemory& message,
                               fabric::PeerHandle peer,
                               fabric::PostContext* context) noexcept override {
    return inner_->post_send(message, peer, context);
  }

  fabric::PostResult post_receive(const fabric::LocalMemory& buffer,
                                  fabric::PostContext* context) noexcept override {
    return inner_->post_receive(buffer, context);
  }

  std::size_t poll(std::span<fabric::Event> events) noexcept override {
    return inner_->poll(events);
  }

  [[nodiscard]] int last_error() const noexcept override { return inner_->last_error(); }

  [[nodiscard]] const char* last_action() const noexcept override { return inner_->last_action(); }

  [[nodiscard]] std::string words_of(const fabric::Event& event) const override {
    return inner_->words_of(event);
  }

  [[nodiscard]] int wait_descriptor() const noexcept override { return inner_->wait_descriptor(); }

  [[nodiscard]] bool may_sleep() noexcept override { return inner_->may_sleep(); }

  [[nodiscard]] fabric::LinkHealth examine(std::span<const std::byte> peer_address,
                                           std::uint32_t silent_ms) noexcept override {
    return inner_->examine(peer_address, silent_ms);
  }

  bool cut(std::span<const std::byte> peer_address) noexcept override {
    return inner_->cut(peer_address);
  }

 private:
  static fabric::LocalMemory reached(const fabric::LocalMemory& memory) {
    return {memory.on_device ? GuardedMemory::reached(memory.address) : memory.address,
            memory.bytes, memory.on_device};
  }

  std::unique_ptr<fabric::Rail> inner_;
  std::function<void()> on_end_;
};

}  // namespace weft::test
