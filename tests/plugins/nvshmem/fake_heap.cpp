// Reserving, mapping and registering, and finding the handle of an address.
#include "tests/plugins/nvshmem/fake_heap.hpp"

#include <bit>
#include <stdexcept>

#include <sys/mman.h>

namespace weft::plugins::nvshmem {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error(what);
  }
}

std::byte* reserve(std::size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED, "mmap of a heap's addresses failed");
  return static_cast<std::byte*>(memory);
}

}  // namespace

FakeHeap::FakeHeap(Board& board, int pe, const HeapOptions& options)
    : board_(board), pe_(pe), options_(options) {
  const std::size_t bytes = kChunksMax * options_.chunk_bytes;
  // Processes that were forked would get the same address.
  static_cast<void>(reserve(static_cast<std::size_t>(pe + 1) * (std::size_t{1} << 20U)));
  base_ = reserve(bytes + options_.chunk_bytes);
  base_ += options_.chunk_bytes - reinterpret_cast<std::uintptr_t>(base_) % options_.chunk_bytes;
  const auto mine = reinterpret_cast<std::uint64_t>(base_);
  require(board_.gather(pe_, &mine, bases_.data(), sizeof(mine)) == 0, "the bases were not told");
}

FakeHeap::~FakeHeap() {
  ::munmap(base_, kChunksMax * options_.chunk_bytes);
}

void FakeHeap::fill_in(HostFields& fields) {
  fields.heap_base = base_;
  fields.log2_heap_granularity = static_cast<std::size_t>(std::countr_zero(options_.chunk_bytes));
  fields.alias_map = &aliases_;
  fields.egm_map = nullptr;
}

void FakeHeap::add_chunk(const LoadedTransport& transport) {
  require(chunk_count_ < kChunksMax, "no chunk is left");
  const int sharing = options_.is_shared_memory ? MAP_SHARED : MAP_PRIVATE;
  void* memory = ::mmap(at(chunk_count_ * options_.chunk_bytes), options_.chunk_bytes,
                        PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  require(memory != MAP_FAILED, "mmap of a chunk failed");
  add_again(transport, chunk_count_);
  ++chunk_count_;
}

void FakeHeap::add_user_chunk(const LoadedTransport& transport, void* memory) {
  require(chunk_count_ < kChunksMax, "no chunk is left");
  aliases_[at(chunk_count_ * options_.chunk_bytes)] = memory;
  add_again(transport, chunk_count_);
  ++chunk_count_;
}

void FakeHeap::add_again(const LoadedTransport& transport, std::size_t chunk) {
  MemoryHandle mine{};
  require(transport.get_memory_handle(&mine, at(chunk * options_.chunk_bytes), options_.chunk_bytes,
                                      false) == 0,
          "get_memory_handle of chunk " + std::to_string(chunk) + " failed");
  require(board_.gather(pe_, &mine, handles_[chunk].data(), sizeof(mine)) == 0,
          "the handles of chunk " + std::to_string(chunk) + " were not gathered");
  is_registered_[chunk] = true;
}

void FakeHeap::release(const LoadedTransport& transport, std::size_t chunk) {
  require(transport.release_memory_handle(handle(chunk, pe_)) == 0,
          "release_memory_handle of chunk " + std::to_string(chunk) + " failed");
  is_registered_[chunk] = false;
}

void FakeHeap::release_all(const LoadedTransport& transport) {
  for (Buffer& buffer : buffers_) {
    if (buffer.memory != nullptr) {
      release_buffer(transport, buffer.memory);
    }
  }
  for (std::size_t chunk = 0; chunk < chunk_count_; ++chunk) {
    if (is_registered_[chunk]) {
      release(transport, chunk);
    }
  }
}

void FakeHeap::register_buffer(const LoadedTransport& transport, void* memory, std::size_t bytes) {
  for (Buffer& buffer : buffers_) {
    if (buffer.memory == nullptr) {
      require(transport.get_memory_handle(&buffer.handle, memory, bytes, true) == 0,
              "get_memory_handle of a local buffer failed");
      buffer.bytes = bytes;
      buffer.memory = static_cast<std::byte*>(memory);
      return;
    }
  }
  throw std::runtime_error("no buffer is left");
}

void FakeHeap::release_buffer(const LoadedTransport& transport, void* memory) {
  Buffer* buffer = find_buffer(memory);
  require(buffer != nullptr, "there is no such buffer");
  require(transport.release_memory_handle(buffer->handle) == 0,
          "release_memory_handle of a local buffer failed");
  buffer->memory = nullptr;
}

bool FakeHeap::holds(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= base_ && byte < base_ + chunk_count_ * options_.chunk_bytes;
}

FakeHeap::Buffer* FakeHeap::find_buffer(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  for (Buffer& buffer : buffers_) {
    if (buffer.memory != nullptr && byte >= buffer.memory && byte < buffer.memory + buffer.bytes) {
      return &buffer;
    }
  }
  return nullptr;
}

MemoryDescription FakeHeap::remote(int pe, std::uint64_t offset) {
  require(offset < chunk_count_ * options_.chunk_bytes, "an offset behind the last chunk");
  const std::uint64_t address = bases_[static_cast<std::size_t>(pe)] + offset;
  return {.address = reinterpret_cast<void*>(address),
          .offset = offset,
          .handle = &handle(offset / options_.chunk_bytes, pe)};
}

MemoryDescription FakeHeap::local(const void* address) {
  auto* byte = const_cast<void*>(address);
  if (holds(address)) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    return {
        .address = byte, .offset = offset, .handle = &handle(offset / options_.chunk_bytes, pe_)};
  }
  Buffer* buffer = find_buffer(address);
  require(buffer != nullptr, "local memory that is not registered");
  return {.address = byte, .offset = 0, .handle = &buffer->handle};
}

std::size_t FakeHeap::contiguous_bytes(const void* address) {
  if (holds(address)) {
    return contiguous_bytes(
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_));
  }
  const Buffer* buffer = find_buffer(address);
  require(buffer != nullptr, "local memory that is not registered");
  return static_cast<std::size_t>(buffer->memory + buffer->bytes -
                                  static_cast<const std::byte*>(address));
}

}  // namespace weft::plugins::nvshmem
