// What bandwidths and latencies of puts and gets share: the transfer between PE 0 and its partner,
// its row of the table, and whether the data came.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/perf/gpu/memory.cuh"
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {

// Bytes of one row, so that large sizes take no longer than small ones.
inline constexpr std::size_t kTransferBudget = std::size_t{8} << 30U;

struct Transfer {
  std::byte* dest;
  const std::byte* source;
  std::size_t bytes;
  int peer;
};

inline Transfer transfer_of(const Session& session, std::size_t bytes) {
  return {static_cast<std::byte*>(session.dest()), static_cast<const std::byte*>(session.source()),
          bytes, session.other()};
}

// Puts are looked at where they arrive, gets where they were called.
inline std::uint64_t wrong_bytes(const Session& session, bool is_get, std::size_t bytes) {
  const bool both = session.options().bidirectional;
  const int receiver = is_get ? 0 : session.partner();
  if (!session.options().verifies || !session.is_one_of_two() ||
      (!both && session.me() != receiver)) {
    return 0;
  }
  return count_wrong<std::uint8_t>(
      session.dest(), 1, bytes, {Pattern::One, session.me(), session.pe_count(), session.other()});
}

inline bool takes_part(const Session& session) {
  return session.me() == 0 || (session.options().bidirectional && session.is_one_of_two());
}

inline Row row_of(const Session& session,
                  std::size_t bytes,
                  Shape shape,
                  std::uint64_t iterations) {
  Row row;
  row.bytes = row.count = bytes;
  row.ctas = shape.ctas;
  row.threads = shape.threads;
  row.iterations = iterations;
  row.directions = session.options().bidirectional ? 2 : 1;
  return row;
}

}  // namespace weft::perf::gpu
