// Answers for ranks of other nodes. All that a rank gets are staged slot by slot and put as one message: one range of memory,
// because slots are the same on both sides; or, where rows came by node and only some have an expert here, the ranges of those
// in one list. The message has one word, which the source looks at for each of its tokens.
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
  return mine(exchange) + Staging{exchange.shape}.far_answer_at(combining.number(), rank) +
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
  return mine(exchange) + Staging{exchange.shape}.answer_at(combining.number(), source) +
         slot * answer_bytes(combining);
}

template <typename Way>
__device__ std::uint32_t rows_of(const Combining<Way>& combining, std::uint32_t source) {
  return static_cast<std::uint32_t>(at<std::int32_t>(
      combining.call.plan, combining.exchange.shape.plan().rows_here_at())[source]);
}

// Ranges of slots that have an answer, as segments of a put. One thread.
template <typename Way>
class Ranges {
 public:
  __device__ Ranges(const Combining<Way>& combining, std::uint32_t source)
      : combining_(combining),
        source_(source),
        list_(combining.exchange.segments +
              std::size_t{source} * segments_for(combining.exchange.shape.max_tokens)) {}

  // Slots from `base` on, as bits.
  __device__ void add(std::uint32_t base, unsigned slots) {
    for (std::uint32_t bit = 0; bit < kWarp; ++bit) {
      const bool is_here = (slots >> bit & 1) != 0;
      if (is_here && !is_open_) {
        begin_ = base + bit;
      } else if (!is_here && is_open_) {
        close(base + bit);
      }
      is_open_ = is_here;
    }
  }

  // From begin_ to `end`.
  __device__ void close(std::uint32_t end) {
    const Exchange& exchange = combining_.exchange;
    const std::size_t bytes = answer_bytes(combining_);
    std::byte* dest = mine(exchange) +
                      Staging{exchange.shape}.far_answer_at(
                          combining_.number(), static_cast<std::uint32_t>(exchange.me)) +
                      begin_ * bytes;
    list_[count_++] = {dest, staged_answer(combining_, source_, begin_), (end - begin_) * bytes};
    is_open_ = false;
  }

  __device__ void put() const {
    const Exchange& exchange = combining_.exchange;
    const std::uint64_t number = combining_.number();
    auto* word = at<std::uint64_t>(
        mine(exchange),
        Staging{exchange.shape}.far_answered_at(number, static_cast<std::uint32_t>(exchange.me)));
    const device::Signal signal{word, number, device::SignalOp::Set};
    const int pe = exchange.state->pes[source_];
    if (count_ == 1) {
      device::put_signal_nbi<device::Thread>(static_cast<std::byte*>(list_[0].dest),
                                             static_cast<const std::byte*>(list_[0].source),
                                             list_[0].bytes, signal, pe);
    } else if (count_ > 1) {
      device::putv_signal_nbi<device::Thread>(list_, count_, signal, pe);
    }
  }

  __device__ bool is_open() const { return is_open_; }

 private:
  const Combining<Way>& combining_;
  std::uint32_t source_;
  device::Segment* list_;
  std::uint32_t count_ = 0;
  std::uint32_t begin_ = 0;
  bool is_open_ = false;
};

// One thread: whether the row in this slot has an expert of this rank. Not all of those that came by node have.
template <typename Way>
__device__ bool has_answer(const Combining<Way>& combining,
                           std::uint32_t source,
                           std::uint32_t slot) {
  const Shape& shape = combining.exchange.shape;
  const auto* places =
      at<std::int32_t>(combining.call.plan, shape.plan().place_here_at(source, slot));
  bool has_any = false;
  for (std::uint32_t i = 0; i < shape.topk; ++i) {
    has_any = has_any || places[i] >= 0;
  }
  return has_any;
}

// One warp, which has acquired what was staged.
template <typename Way>
__device__ void put_answers(const Combining<Way>& combining, std::uint32_t source) {
  const std::uint32_t rows = rows_of(combining, source);
  Ranges ranges(combining, source);
  const bool is_whole = !combining.exchange.by_node;
  for (std::uint32_t base = 0; !is_whole && base < rows; base += kWarp) {
    const std::uint32_t slot = base + lane();
    const unsigned slots =
        __ballot_sync(kAllLanes, slot < rows && has_answer(combining, source, slot));
    if (lane() == 0) {
      ranges.add(base, slots);
    }
  }
  if (lane() == 0) {
    if (is_whole || ranges.is_open()) {
      ranges.close(rows);
    }
    ranges.put();
  }
}

// One warp, behind a barrier of those that staged: `count` more rows of `source` are done with.
template <typename Way>
__device__ void add_answers(const Combining<Way>& combining,
                            std::uint32_t source,
                            std::uint32_t count) {
  State& state = *combining.exchange.state;
  int is_last = 0;
  if (lane() == 0) {
    // SYNC moe-staged: the answer before it is counted.
    device::fence_release();
    is_last = atomicAdd(&state.answers[source], count) + count == kWhole ? 1 : 0;
    if (is_last != 0) {
      // SYNC moe-staged: all of them are read by the put.
      device::fence_acquire();
      state.answers[source] = 0;
    }
  }
  if (__shfl_sync(kAllLanes, is_last, 0) != 0) {
    put_answers(combining, source);
  }
}

// A group: the row `slot` of `source`, if there is one, is done with.
template <typename Way>
__device__ void end_far_answer(const Combining<Way>& combining,
                               std::uint32_t source,
                               std::uint32_t slot) {
  if (kBetweenNodes && Group::warp() == 0 && is_remote(combining.exchange, source) &&
      !combining.is_gone(source) && slot < rows_of(combining, source)) {
    add_answers(combining, source, 1);
  }
}

// All threads of the grid: how many rows each rank of another node waits for.
template <typename Way>
__device__ void begin_far_answers(const Combining<Way>& combining) {
  if constexpr (kBetweenNodes) {
    const std::uint32_t ranks = thread_of_block() < kWarp ? combining.exchange.shape.ranks() : 0;
    for (std::uint32_t source = blockIdx.x; source < ranks; source += gridDim.x) {
      const std::uint32_t rows = rows_of(combining, source);
      if (rows > 0 && is_remote(combining.exchange, source) && !combining.is_gone(source)) {
        add_answers(combining, source, kWhole - rows);
      }
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
