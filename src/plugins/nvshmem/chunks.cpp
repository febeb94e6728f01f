#include "src/plugins/nvshmem/chunks.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::plugins::nvshmem {

Chunks::Chunks(transport::rails::RailsTransport& rails, Pe me, std::uint32_t pe_count)
    : rails_(rails),
      me_(me),
      own_(1),
      entered_(static_cast<std::uint32_t*>(
          std::calloc(std::size_t{pe_count} * kRegionCountMax, sizeof(std::uint32_t)))) {
  if (entered_ == nullptr) {
    throw std::bad_alloc();
  }
}

RegionIndex Chunks::take_number() {
  const auto free = std::find_if(own_.begin() + 1, own_.end(),
                                 [](const Chunk& chunk) { return chunk.memory.empty(); });
  const auto number = static_cast<std::uint32_t>(free - own_.begin());
  if (free == own_.end()) {
    own_.emplace_back();
  }
  return RegionIndex(number);
}

void Chunks::count(const Chunk& chunk) {
  // relaxed: whoever names a chunk has its handle, which this thread hands out after this.
  AtomicRef(special_count_).fetch_add(chunk.is_special() ? 1 : 0, std::memory_order_relaxed);
}

void Chunks::uncount(const Chunk& chunk) {
  // relaxed: as count.
  AtomicRef(special_count_).fetch_sub(chunk.is_special() ? 1 : 0, std::memory_order_relaxed);
}

void Chunks::offer(MemoryHandle& handle,
                   std::span<std::byte> memory,
                   std::byte* base,
                   const GpuMemory* gpu) {
  const std::scoped_lock lock(mutex_);
  const RegionIndex number = take_number();
  const std::vector<fabric::RegionKey> keys =
      gpu == nullptr ? rails_.own_regions().offer(number, memory)
                     : rails_.own_regions().offer(number, gpu->memory, *gpu->words);
  if (keys.size() > kHandleRailsMax) {
    rails_.own_regions().withdraw(number);
    fail(
        "a memory handle of NVSHMEM has room for the keys of {} rails, this PE has {}; set "
        "WEFT_RAIL_COUNT_MAX={}",
        kHandleRailsMax, keys.size(), kHandleRailsMax);
  }
  Chunk& chunk = own_[number.value];
  chunk = {.memory = memory,
           .base = base,
           .generation = chunk.generation + 1,
           .words = gpu == nullptr ? nullptr : gpu->words};
  count(chunk);
  ChunkHandle written{.pe = me_.value,
                      .rail_count = static_cast<std::uint16_t>(keys.size()),
                      .region = number.value,
                      .generation = chunk.generation,
                      .base = reinterpret_cast<std::uintptr_t>(base),
                      .bytes = memory.size()};
  std::ranges::copy(keys, written.keys.begin());
  write_handle(handle, written);
}

void Chunks::keep_local(MemoryHandle& handle, std::span<std::byte> memory, const GpuMemory* gpu) {
  if (gpu != nullptr) {
    for (const transport::rails::DeviceRail& rail : rails_.register_device_memory(gpu->memory)) {
      if (rail.way == fabric::DeviceWay::None) {
        fail("the NIC {} does not reach {} of GPU memory: {}", rail.nic,
             format_bytes(memory.size()), rail.why);
      }
    }
    const std::scoped_lock lock(mutex_);
    locals_.push_back(
        {.memory = memory, .base = memory.data(), .generation = 0, .words = gpu->words});
    count(locals_.back());
  }
  write_handle(handle, {.pe = me_.value,
                        .kind = ChunkKind::LocalOnly,
                        .base = reinterpret_cast<std::uintptr_t>(memory.data()),
                        .bytes = memory.size()});
}

void Chunks::release(const MemoryHandle& handle) {
  const ChunkHandle* released = read_handle(&handle);
  if (released == nullptr) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  if (released->kind == ChunkKind::LocalOnly) {
    release_local(*released);
    return;
  }
  if (released->region >= own_.size() || own_[released->region].memory.empty() ||
      own_[released->region].generation != released->generation) {
    return;
  }
  Chunk& chunk = own_[released->region];
  uncount(chunk);
  rails_.own_regions().withdraw(RegionIndex(released->region));
  chunk.memory = {};
  chunk.words = nullptr;
}

void Chunks::release_local(const ChunkHandle& released) {
  const auto buffer = std::ranges::find_if(locals_, [&](const Chunk& one) {
    return reinterpret_cast<std::uintptr_t>(one.base) == released.base &&
           one.memory.size() == released.bytes;
  });
  if (buffer != locals_.end()) {
    uncount(*buffer);
    rails_.drop_device_region(buffer->memory);
    locals_.erase(buffer);
  }
}

heap::Place Chunks::place_of(Pe pe, const MemoryDescription& remote, std::uint64_t bytes) {
  const ChunkHandle* chunk = read_handle(remote.handle);
  if (chunk == nullptr || chunk->pe != pe.value || chunk->region >= kRegionCountMax) {
    fail(Status::InvalidArgument, "NVSHMEM names memory at {} of PE {} by a handle that is not {}",
         remote.address, pe.value,
         chunk == nullptr ? "Weft's" : fmt::format("of that PE but of PE {}", chunk->pe));
  }
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(remote.address) - chunk->base;
  if (offset > chunk->bytes || bytes > chunk->bytes - offset) {
    fail(Status::InvalidArgument,
         "NVSHMEM names {} bytes at {} of PE {}, which are not in the chunk of {} bytes at {:#x}",
         bytes, remote.address, pe.value, chunk->bytes, chunk->base);
  }
  std::uint32_t& entered = entered_.get()[std::size_t{pe.value} * kRegionCountMax + chunk->region];
  // SYNC chunk-keys: pairs with enter; the rails have the keys.
  if (AtomicRef(entered).load(std::memory_order_acquire) != chunk->generation) {
    enter(pe, *chunk, entered);
  }
  return {.region = RegionIndex(chunk->region), .offset = HeapOffset(offset)};
}

void Chunks::enter(Pe pe, const ChunkHandle& chunk, std::uint32_t& entered) {
  const std::size_t keys = std::min<std::size_t>(chunk.rail_count, kHandleRailsMax);
  rails_.own_regions().enter(pe, RegionIndex(chunk.region), std::span(chunk.keys).first(keys));
  // SYNC chunk-keys: pairs with place_of.
  AtomicRef(entered).store(chunk.generation, std::memory_order_release);
}

OwnMemory Chunks::own_memory(void* named) const {
  auto* address = static_cast<std::byte*>(named);
  // relaxed: as count.
  if (AtomicRef(special_count_).load(std::memory_order_relaxed) == 0) {
    return {.address = address};
  }
  const std::shared_lock lock(mutex_);
  for (const std::vector<Chunk>* chunks : {&own_, &locals_}) {
    for (const Chunk& chunk : *chunks) {
      if (address >= chunk.base && address < chunk.base + chunk.memory.size()) {
        return {.address = chunk.memory.data() + (address - chunk.base),
                .words = chunk.words.get()};
      }
    }
  }
  return {.address = address};
}

}  // namespace weft::plugins::nvshmem
