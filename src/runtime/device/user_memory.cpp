#include "src/runtime/device/user_memory.hpp"

#include <algorithm>
#include <string_view>

#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/runtime/agreement.hpp"

namespace weft::runtime {

void* AdoptedMemory::add(std::span<std::byte> memory) {
  constexpr std::string_view kName = "weft_device_register_symmetric";
  with_.calls.agree(
      kName, {.kind = static_cast<std::uint64_t>(RequestKind::Adopt), .bytes = memory.size()});
  if (memory.empty() || memory.size() % heap::kChunkUnit != 0) {
    fail(Status::InvalidArgument, "{}: {} bytes are not a multiple of {}", kName, memory.size(),
         format_bytes(heap::kChunkUnit));
  }
  if (!with_.heap.can_grow()) {
    fail(Status::InvalidArgument,
         "{}: the device heap has a fixed size, so nothing can be mapped into it "
         "(WEFT_DEVICE_HEAP_MAX, "
         "WEFT_DEVICE_MEMORY)",
         kName);
  }
  try {
    const heap::Chunk chunk = with_.growth.adopt(memory, [&] { check(memory); });
    entries_.push_back({chunk, memory.data()});
    with_.calls.sync(kName);
    return with_.heap.base() + chunk.offset;
  } catch (const Error& error) {
    fail(error.status(), "{}: {}", kName, error.what());
  }
}

// Of this PE alone; the others hear of it.
void AdoptedMemory::check(std::span<const std::byte> memory) const {
  const std::uint64_t offset = with_.heap.offset_of(memory.data());
  const bool is_in_heap = offset < with_.heap.limit();
  const bool is_adopted = std::ranges::any_of(entries_, [&](const Entry& one) {
    return memory.data() < one.memory + one.chunk.bytes &&
           one.memory < memory.data() + memory.size();
  });
  if (is_in_heap || is_adopted) {
    fail(Status::InvalidArgument, "{} bytes at {} are symmetric already", memory.size(),
         static_cast<const void*>(memory.data()));
  }
}

void AdoptedMemory::remove(void* address) {
  constexpr std::string_view kName = "weft_device_unregister_symmetric";
  with_.quiet(kName);  // commands name addresses in it
  with_.calls.sync(kName);
  const auto found =
      std::ranges::find_if(entries_, [offset = with_.heap.offset_of(address)](const Entry& one) {
        return one.chunk.offset == offset;
      });
  // Addresses that are none of these differ between PEs, and are all alike here: 0, where no such
  // memory is.
  with_.calls.agree(kName, {.kind = static_cast<std::uint64_t>(RequestKind::AdoptEnd),
                            .offset = found == entries_.end() ? 0 : found->chunk.offset});
  if (found == entries_.end()) {
    fail(Status::InvalidArgument,
         "{}: {} is not the start of memory that weft_device_register_symmetric returned (or it "
         "was unregistered)",
         kName, address);
  }
  with_.growth.remove(found->chunk);
  entries_.erase(found);
}

}  // namespace weft::runtime
