// The bytes themselves: what an operation copies between its two processes once its cells have
// arrived, after asking whether the key allows it. Host memory by cross-memory attach, at once;
// memory of GPUs by copy engines, later.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loom/src/operation.hpp"
#include "loom/src/persona.hpp"
#include "loom/src/segment.hpp"

namespace loom {

// Copies a part of the operation. 0 or a positive error; empty while a GPU copies: ask again, for
// the same part.
[[nodiscard]] std::optional<int> copy_data(const Segment& segment,
                                           const FabricKind& kind,
                                           Operation& operation,
                                           std::uint64_t offset,
                                           std::uint64_t bytes);

// An atomic on the peer's word, under its lock. 0 or a positive error.
[[nodiscard]] int do_atomic(Segment& segment, const FabricKind& kind, const Operation& operation);

// A message as one piece of host memory; `joined` keeps it where it was several, or a GPU's. Empty
// if it cannot be read.
[[nodiscard]] std::optional<std::span<const std::byte>> message_of(const Operation& operation,
                                                                   std::vector<std::byte>& joined);

}  // namespace loom
