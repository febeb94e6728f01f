// What the 512 opaque bytes of a memory handle hold: which region of which PE a chunk is, and its
// keys on that PE's rails. The host copies them to all PEs.
//
// Pure. An offer is checked when its bytes are read, because the host passes what it was given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "src/base/ids.hpp"
#include "src/fabric/rail.hpp"
#include "src/plugins/nvshmem/abi.hpp"

namespace weft::plugins::nvshmem {

// Rails whose keys a handle has room for.
inline constexpr std::size_t kHandleRailsMax = 29;

enum class ChunkKind : std::uint16_t {
  Heap = 1,       // peers access it
  LocalOnly = 2,  // a buffer of this PE alone
};

struct ChunkHandle {
  static constexpr std::uint64_t kMagic = 0x3153'5654'4645'5701;  // changes with the layout

  std::uint64_t magic = kMagic;
  std::uint32_t pe = 0;
  ChunkKind kind = ChunkKind::Heap;
  std::uint16_t rail_count = 0;
  std::uint32_t region = 0;      // the owner's number of it
  std::uint32_t generation = 0;  // how often the owner has used that number; not 0
  std::uint64_t base = 0;        // the address by which the host names it, on its owner
  std::uint64_t bytes = 0;
  std::array<fabric::RegionKey, kHandleRailsMax> keys{};  // by rail of the owner
};

static_assert(sizeof(fabric::RegionKey) == 16 && sizeof(ChunkHandle) <= sizeof(MemoryHandle));

inline void write_handle(MemoryHandle& to, const ChunkHandle& chunk) {
  to = {};
  std::memcpy(&to, &chunk, sizeof(chunk));
}

// Null if it was not written by write_handle. Valid as long as `from`.
[[nodiscard]] inline const ChunkHandle* read_handle(const MemoryHandle* from) {
  const auto* chunk = reinterpret_cast<const ChunkHandle*>(from);
  return chunk != nullptr && chunk->magic == ChunkHandle::kMagic ? chunk : nullptr;
}

}  // namespace weft::plugins::nvshmem
