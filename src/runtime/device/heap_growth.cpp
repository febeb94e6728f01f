#include "src/runtime/device/heap_growth.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::runtime {
namespace {

// What a PE sends in a step: why it failed, or its memory.
struct Step {
  std::string error;
  std::uint32_t status = 0;
  gpu::DeviceSegmentOffer offer;
};

bootstrap::Blob encode(const Step& step) {
  bootstrap::FieldWriter writer;
  writer.text(step.error).u32(step.status).raw(std::as_bytes(std::span(&step.offer, 1)));
  return writer.bytes();
}

Step decode(const bootstrap::Blob& blob) {
  bootstrap::FieldReader reader(blob);
  Step step{.error = reader.text(), .status = reader.u32(), .offer = {}};
  const auto to = std::as_writable_bytes(std::span(&step.offer, 1));
  std::ranges::copy(reader.raw(to.size()), to.begin());
  return step;
}

// Runs `action` here, then exchanges its result. Throws the error of the first PE that has one, the
// same on all PEs.
std::vector<gpu::DeviceSegmentOffer> together(
    bootstrap::Bootstrap& bootstrap, const std::function<gpu::DeviceSegmentOffer()>& action) {
  Step mine;
  try {
    mine.offer = action();
  } catch (const Error& error) {
    mine.error = error.what();
    mine.status = static_cast<std::uint32_t>(error.status());
  }
  std::vector<gpu::DeviceSegmentOffer> offers;
  std::string error;
  std::uint32_t status = 0;
  for (const bootstrap::Blob& blob : bootstrap.allgather(encode(mine))) {
    const Step step = decode(blob);
    if (error.empty() && !step.error.empty()) {
      error = fmt::format("PE {}: {}", offers.size(), step.error);
      status = step.status;
    }
    offers.push_back(step.offer);
  }
  if (!error.empty()) {
    fail(static_cast<Status>(static_cast<std::int32_t>(status)), "{}", error);
  }
  return offers;
}

gpu::SegmentPart part_of(const heap::Chunk& chunk) {
  return {.offset = chunk.offset, .bytes = chunk.bytes};
}

}  // namespace

// The first attempt takes more than the block needs. A GPU that is almost full may have only that.
void HeapGrowth::grow(std::uint64_t bytes) {
  const auto ample = with_.heap.plan_growth(bytes, heap::Growth::Ample);
  const auto exact = with_.heap.plan_growth(bytes, heap::Growth::Exact);
  if (!ample || !exact) {
    fail(Status::OutOfMemory,
         "it has {} in {} chunks, and {} more are beyond the {} to which it may grow: "
         "WEFT_DEVICE_HEAP_MAX, the least of the GPUs' memory, and {} chunks",
         format_bytes(with_.heap.user_bytes()), with_.heap.chunks().all().size(),
         format_bytes(bytes), format_bytes(with_.heap.limit()), heap::kChunkCountMax);
  }
  const RegionIndex region = free_region();
  try {
    add({.offset = ample->offset, .bytes = ample->bytes, .region = region});
  } catch (const Error& error) {
    if (*ample == *exact || error.status() != Status::OutOfMemory) {
      throw;
    }
    with_.bootstrap.barrier();  // peers have let go of the first attempt's memory
    add({.offset = exact->offset, .bytes = exact->bytes, .region = region});
  }
}

void HeapGrowth::add(const heap::Chunk& chunk) {
  connect_all(
      chunk, [this](const gpu::SegmentPart& part) { return with_.heap.segments().add_part(part); });
  with_.heap.add_chunk(chunk);
  log::info("device: the heap has grown by {} at offset {}, to {}", format_bytes(chunk.bytes),
            format_bytes(chunk.offset), format_bytes(with_.heap.user_bytes()));
}

heap::Chunk HeapGrowth::adopt(std::span<std::byte> memory, const std::function<void()>& check) {
  const auto place = with_.heap.plan_growth(memory.size(), heap::Growth::Exact);
  if (!place) {
    fail(Status::OutOfMemory,
         "{} have no place among the {} of addresses that are reserved (WEFT_DEVICE_HEAP_MAX, the "
         "least of the GPUs' "
         "memory), or among {} chunks",
         format_bytes(memory.size()), format_bytes(with_.heap.limit()), heap::kChunkCountMax);
  }
  const heap::Chunk chunk{.offset = place->offset, .bytes = place->bytes, .region = free_region()};
  connect_all(chunk, [&](const gpu::SegmentPart& part) {
    check();
    return with_.heap.segments().adopt_part(part, memory.data());
  });
  with_.heap.adopt_chunk(chunk);
  return chunk;
}

void HeapGrowth::connect_all(const heap::Chunk& chunk, const Take& take) {
  try {
    map_own_and_peers(part_of(chunk), take);
    if (with_.connect) {
      with_.connect(chunk);
    }
  } catch (...) {
    with_.heap.segments().drop_part(part_of(chunk));
    throw;
  }
  with_.heap.segments().close_offer();
}

void HeapGrowth::map_own_and_peers(const gpu::SegmentPart& part, const Take& take) {
  gpu::Segments& segments = with_.heap.segments();
  const std::vector<gpu::DeviceSegmentOffer> offers =
      together(with_.bootstrap, [&] { return take(part); });
  static_cast<void>(together(with_.bootstrap, [&] {
    for (std::uint32_t pe = 0; pe < offers.size(); ++pe) {
      if (with_.slots[pe] != kNotHere) {
        segments.map_part(with_.slots[pe], part, offers[pe], fmt::format("PE {}", pe));
      }
    }
    return gpu::DeviceSegmentOffer{};
  }));
}

void HeapGrowth::give_back() {
  for (const heap::Chunk& chunk : with_.heap.empty_chunks()) {
    remove(chunk);
    log::info("device: the heap has given back {} at offset {}", format_bytes(chunk.bytes),
              format_bytes(chunk.offset));
  }
}

void HeapGrowth::remove(const heap::Chunk& chunk) {
  with_.heap.remove_chunk(chunk);
  if (with_.disconnect) {
    with_.disconnect(chunk);
  }
  with_.heap.segments().drop_part(part_of(chunk));
}

void HeapGrowth::disconnect_all() {
  for (const heap::Chunk& chunk : with_.heap.chunks().all()) {
    if (chunk.offset != 0 && with_.disconnect) {
      with_.disconnect(chunk);
    }
  }
}

// There are as many numbers as chunks.
RegionIndex HeapGrowth::free_region() const {
  const std::vector<heap::Chunk> chunks = with_.heap.chunks().all();
  const auto is_free = [&chunks](RegionIndex region) {
    return std::ranges::find(chunks, region, &heap::Chunk::region) == chunks.end();
  };
  const auto free = std::ranges::find_if(with_.regions, is_free);
  return free == with_.regions.end() ? RegionIndex() : *free;
}

}  // namespace weft::runtime
