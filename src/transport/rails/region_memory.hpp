// What the CPU does to the memory of regions for peers: it stores data that came in messages, and
// updates words. Of the host's own memory by itself, of a GPU's through its WordMemory.
//
// Called under the transport's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "src/transport/rails/state.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

// A region's memory, and how its words are reached: null for memory of the host.
void enter_memory(State& state,
                  RegionIndex index,
                  std::span<std::byte> memory,
                  gpu::WordMemory* words = nullptr);

// False if there is no such memory here.
[[nodiscard]] bool store_data(const State& state,
                              const UpdateFrame& frame,
                              std::span<const std::byte> data);

// Stores the data, then updates the word. The old value, if the frame asks for a reply. Empty if
// there is no such memory here, or the word is not aligned: then nothing was changed.
[[nodiscard]] std::optional<std::uint64_t> apply_update(const State& state,
                                                        const UpdateFrame& frame,
                                                        std::span<const std::byte> data);

}  // namespace weft::transport::rails
