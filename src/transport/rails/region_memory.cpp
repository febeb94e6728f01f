#include "src/transport/rails/region_memory.hpp"

#include <algorithm>
#include <cstring>

#include "src/transport/atomic_update.hpp"
#include "src/transport/device_update.hpp"
#include "src/transport/rails/frame_check.hpp"

namespace weft::transport::rails {
namespace {

void store(const State& state,
           std::uint32_t region,
           std::byte* dest,
           std::span<const std::byte> data) {
  if (gpu::WordMemory* words = state.words_of(region); words != nullptr) {
    words->write(dest, data.data(), data.size());
  } else {
    std::memcpy(dest, data.data(), data.size());
  }
}

}  // namespace

void enter_memory(State& state,
                  RegionIndex index,
                  std::span<std::byte> memory,
                  gpu::WordMemory* words) {
  if (index.value >= state.regions.size()) {
    state.regions.resize(index.value + 1);
  }
  state.regions[index.value] = memory;
  if (words != nullptr || index.value < state.words.size()) {
    state.words.resize(std::max<std::size_t>(state.words.size(), index.value + 1));
    state.words[index.value] = words;
  }
  const auto device =
      std::ranges::find_if(state.words, [](const auto* found) { return found != nullptr; });
  state.device_words = device == state.words.end() ? nullptr : *device;
}

bool store_data(const State& state, const UpdateFrame& frame, std::span<const std::byte> data) {
  std::byte* dest = memory_at(state.regions, frame.data_region, frame.data_offset, data.size());
  if (dest != nullptr) {
    store(state, frame.data_region, dest, data);
  }
  return dest != nullptr;
}

std::optional<std::uint64_t> apply_update(const State& state,
                                          const UpdateFrame& frame,
                                          std::span<const std::byte> data) {
  std::byte* word = memory_at(state.regions, frame.region, frame.offset, frame.element_bytes);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(word) % frame.element_bytes == 0;
  if (word == nullptr || !is_aligned || (!data.empty() && !store_data(state, frame, data))) {
    return std::nullopt;
  }
  const AtomicUpdate update{.code = static_cast<AtomicCode>(frame.code),
                            .element_bytes = frame.element_bytes,
                            .word = {},
                            .operand = frame.operand,
                            .compare = frame.compare};
  if (gpu::WordMemory* words = state.words_of(frame.region); words != nullptr) {
    return apply_atomic(*words, word, update, frame.token != 0);
  }
  if (state.device_words != nullptr) {  // the word may announce data in the GPU's memory
    state.device_words->show_nic_writes();
  }
  return apply_atomic(word, update);
}

}  // namespace weft::transport::rails
