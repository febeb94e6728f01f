// The interface of this folder's kernel files to gpu/cuda/on_stream.cpp: loading of kernels, and
// reductions by type.
//
// Threads: any.
// Errors: CUDA's as a number, 0 for none.
#pragma once

#include "src/gpu/on_stream.hpp"

namespace weft::gpu::on_stream {

[[nodiscard]] int preload_data();
[[nodiscard]] int preload_lists();
[[nodiscard]] int preload_exchanges();

// ---- Reductions: one file per type, all of the same form (reduce.cuh).

using Reduce = int (*)(const StreamCollective& call,
                       const ReduceOptions& options,
                       weft_stream_t stream);

struct ReduceOfType {
  Reduce launch;
  int (*preload)();
};

[[nodiscard]] ReduceOfType reduce_uint32();
[[nodiscard]] ReduceOfType reduce_uint64();
[[nodiscard]] ReduceOfType reduce_signed();  // min and max of both widths
[[nodiscard]] ReduceOfType reduce_float();
[[nodiscard]] ReduceOfType reduce_double();

}  // namespace weft::gpu::on_stream
