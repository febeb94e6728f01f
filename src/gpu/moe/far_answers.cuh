// Answers for ranks of other nodes. All that a rank gets are staged slot by slot and put as one message, because slots are the
// same on both sides. The message has one word, which the source looks at for each of its tokens.
//
// Device code: whoever stages the last answer for a rank puts the message, as for the rows of a dispatch (remote.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/gpu/moe/combine.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// Rows for ranks of other nodes travel as they are summed, so those of fp8 are shorter.
template <typename Way>
__device__ std::size_t answer_bytes(const Combining<Way>& combining) {
  const Shape& shape = combining.exchange.shape;
  return Way::kAs == Travels::Fp8 ? weft::moe::Fp8Row{shape.hidden}.bytes() : shape.output_bytes;
}

// Where the answer of `rank`, on another node, to this rank's row in `slot` there arrives.
template <typename Way>
const __device__ std::byte* far_answer(const Combining<Way>& combining,
                                       std::uint32_t rank,
                                       std::int32_t slot) {
  const Exchange& exchange = combining.exchange;
  return mine(exchange) +
         Staging{exchange.shape}.far_answer_at(combining.number(), exchange.place_there[rank]) +
         static_cast<std::size_t>(slot) * answer_bytes(combining);
}

// The word of all answers of `rank`, which is on another node.
template <typename Way>
const __device__ std::uint64_t* far_answered(const Combining<Way>& combining, std::uint32_t rank) {
  const Exchange& exchange = combining.exchange;
  return at<std::uint64_t>(mine(exchange),
                           Staging{exchange.shape}.far_answered_at(combining.number(), rank));
}

template <typename Way>
__device__ std::byte* staged_answer(const Combining<Way>& combining,
                                    std::uint32_t source,
                                    std::uint32_t slot) {
  const Exchange& exchange = combining.exchange;
  return mine(exchange) +
         Staging{exchange.shape}.answer_at(combining.number(), exchange.place_here[source]) +
         slot * answer_bytes(combining);
}

template <typename Way>
__device__ std::uint32_t rows_of(const Combining<Way>& combining, std::uint32_t source) {
  return static_cast<std::uint32_t>(at<std::int32_t>(
      combining.call.plan, combining.exchange.shape.plan().rows_here_at())[source]);
}

// One thread, which has acquired what was staged.
template <typename Way>
__device__ void put_answers(const Combining<Way>& combining, std::uint32_t source) {
  const Exchange& exchange = combining.exchange;
  const Staging staging{exchange.shape};
  const std::uint64_t number = combining.number();
  const auto me = static_cast<std::uint32_t>(exchange.me);
  post(exchange,
       {source, staged_answer(combining, source, 0),
        rows_of(combining, source) * answer_bytes(combining),
        staging.far_answer_at(number, exchange.place_there[me]),
        staging.far_answered_at(number, me)},
       number);
}

// One thread, behind a barrier of those that staged: `count` more rows of `source` are done with.
template <typename Way>
__device__ void add_answers(const Combining<Way>& combining,
                            std::uint32_t source,
                            std::uint32_t count) {
  State& state = *combining.exchange.state;
  // SYNC moe-staged: the answer before it is counted.
  device::fence_release();
  if (atomicAdd(&state.answers[source], count) + count != kWhole) {
    return;
  }
  // SYNC moe-staged: all of them are read by the put.
  device::fence_acquire();
  device::store_relaxed(&state.answers[source], 0);
  put_answers(combining, source);
}

// Whether this rank alone answers `source`, which is on another node. With a row for each node its relay does (node_answers.cuh).
template <typename Way>
__device__ bool answers_alone(const Combining<Way>& combining, std::uint32_t source) {
  return kBetweenNodes && !combining.exchange.by_node && is_remote(combining.exchange, source) &&
         !combining.is_gone(source);
}

// A group: the row `slot` of `source`, if there is one, is done with.
template <typename Way>
__device__ void end_far_answer(const Combining<Way>& combining,
                               std::uint32_t source,
                               std::uint32_t slot) {
  if (answers_alone(combining, source) && Group::thread() == 0 &&
      slot < rows_of(combining, source)) {
    add_answers(combining, source, 1);
  }
}

// All threads of the grid: how many rows each rank of another node waits for, of those with answers(rank).
template <typename Way, typename Answers>
__device__ void begin_far_answers(const Combining<Way>& combining, Answers&& answers) {
  if constexpr (kBetweenNodes) {
    const std::uint32_t ranks = thread_of_block() == 0 ? combining.exchange.shape.ranks() : 0;
    for (std::uint32_t source = blockIdx.x; source < ranks; source += gridDim.x) {
      const std::uint32_t rows = rows_of(combining, source);
      if (rows > 0 && answers(source)) {
        add_answers(combining, source, kWhole - rows);
      }
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
