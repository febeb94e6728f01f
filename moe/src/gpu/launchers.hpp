// Dispatch and combine of weft::moe as kernels; ranks whose GPU memory is mapped here are stored
// to, others put to. Launchers only: the callers have checked the arguments.
// gpu/kernels/dispatch.cuh and combine.cuh say how the kernels work.
//
// All can be captured in a CUDA graph: nothing here allocates or waits, and the numbers of the
// calls are in GPU memory.
//
// Threads: any. Each launcher returns CUDA's error as a number, 0 if the work is on the stream.
#pragma once

#include <weft/device.h>
#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "moe/src/gpu/layout.hpp"

namespace weft::moe::gpu {

// Loads the kernels (on_stream.hpp says why), and returns how many blocks of any of them a
// multiprocessor of the current GPU holds, and how many multiprocessors it has. Throws Error.
struct Residency {
  int blocks = 0;
  int processors = 0;
};

[[nodiscard]] Residency residency();

// CUDA's error text for a launcher's result.
[[nodiscard]] std::string describe(int error);

// Of 512 threads each.
struct Grid {
  int blocks = 1;
  int groups = 4;  // of a block, each of which handles a row at a time: 1, 4 or 16
};

struct Phases {
  bool sends = true;
  bool receives = true;
};

// The arrays are those of weft_moe_tokens and weft_moe_rows, in GPU memory; in WEFT_MOE_RANK_MAJOR
// only `counts` and `offsets` of the latter.
struct Dispatch {
  Phases phases;
  std::int32_t tokens = 0;
  const std::byte* x = nullptr;
  weft_moe_type type{};
  const std::byte* scales = nullptr;
  const std::int64_t* ids = nullptr;
  const float* weights = nullptr;
  std::byte* rows = nullptr;
  std::byte* row_scales = nullptr;
  std::int32_t* row_ids = nullptr;
  float* row_weights = nullptr;
  std::int32_t* counts = nullptr;
  std::int64_t* offsets = nullptr;
  std::byte* plan = nullptr;
};

[[nodiscard]] int dispatch(const KernelArguments& exchange,
                           const Dispatch& call,
                           Grid grid,
                           weft_stream_t stream);

struct Combine {
  Phases phases;
  std::byte* plan = nullptr;
  const std::byte* rows = nullptr;
  std::size_t stride = 0;
  weft_moe_precision precision{};
  weft_moe_weighting weighting{};
  const float* weights = nullptr;
  std::byte* out = nullptr;
  // All ranks read each other's outputs where they are. `rows` are then outputs from number
  // `first_output` on.
  bool is_in_place = false;
  std::uint32_t first_output = 0;
};

[[nodiscard]] int combine(const KernelArguments& exchange,
                          const Combine& call,
                          Grid grid,
                          weft_stream_t stream);

// Where the rows of x of a dispatch came from, [rows] each; -1 for rows that no token came for.
struct Sources {
  const std::byte* plan = nullptr;
  std::int32_t* ranks = nullptr;
  std::int32_t* tokens = nullptr;
  std::size_t rows = 0;
};

[[nodiscard]] int find_sources(const KernelArguments& exchange,
                               const Sources& call,
                               weft_stream_t stream);

// The arrays are those of weft_moe_destinations, in GPU memory.
struct Destinations {
  const std::int64_t* ids = nullptr;
  std::uint32_t tokens = 0;
  std::uint32_t topk = 1;
  std::int32_t experts = 1;
  std::int32_t* of_rank = nullptr;
  std::int32_t* of_expert = nullptr;
  std::uint8_t* is_in_rank = nullptr;
};

[[nodiscard]] int count_destinations(const Destinations& call,
                                     std::int32_t ranks,
                                     weft_stream_t stream);

// Those of weft_moe_row_routes, and of the weft_moe_rows that they show. Its ids have room for as
// many rows as *row_count says.
struct RowRoutes {
  const std::int32_t* ids = nullptr;
  const float* weights = nullptr;
  const std::int64_t* row_count = nullptr;
  std::uint32_t topk = 1;
  std::uint32_t experts = 0;  // of this rank
  std::uint32_t rows = 0;     // that are shown
  std::int64_t* shown_ids = nullptr;
  float* shown_weights = nullptr;
  std::int64_t* counts = nullptr;
};

[[nodiscard]] int show_row_routes(const RowRoutes& call, weft_stream_t stream);

// Whether what is enqueued on the stream now goes into a graph.
[[nodiscard]] bool is_captured(weft_stream_t stream);

// In place of the send of a dispatch or a combine that this PE cannot make, and of its receive.
[[nodiscard]] int refuse(const KernelArguments& exchange, weft_moe_step step, weft_stream_t stream);

}  // namespace weft::moe::gpu
