// What is polled itself (Shape::polls): no word tells of it, so nobody waits for a fence, and for a
// word on its way behind it.
//
// Each 16 bytes are stored at once, and are kEmptySlot before. Who waits for them looks at them
// until they are not, and puts kEmptySlot back. 16 bytes of what is sent may be kEmptySlot. Then a
// word is stored behind a fence, as where nothing is polled, and who waits looks at it now and
// then.
//
// Nothing is stored before its place is clear. In a call a rank tells the others that it has put
// back what it polled in the calls before: with its combine header of a combine, which all ranks
// wait for at the end, and with a word of a dispatch, which they wait for at the end of the next
// one, long after it has come. What a refused call leaves is cleared in the next one, when all
// ranks have begun that (clear_spoilt).
#pragma once

#include "moe/src/gpu/kernels/call.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

inline __device__ Vector16 empty_slot() {
  return {kEmptySlot, kEmptySlot, kEmptySlot, kEmptySlot};
}

inline __device__ bool is_empty_slot(const Vector16& data) {
  return ((data.x ^ kEmptySlot) | (data.y ^ kEmptySlot) | (data.z ^ kEmptySlot) |
          (data.w ^ kEmptySlot)) == 0;
}

inline __device__ Vector16 load_polled(const Vector16* from) {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  device::load_relaxed_16(from, low, high);
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32U),
          static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32U)};
}

inline __device__ void store_polled(Vector16* to, const Vector16& data) {
  device::store_relaxed_16(to, data.x | std::uint64_t{data.y} << 32U,
                           data.z | std::uint64_t{data.w} << 32U);
}

// Stores of a thread for one who polls.
struct ForPoller {
  bool has_nothing = false;  // this thread stored kEmptySlot

  __device__ void store(Vector16* to, const Vector16& data) {
    has_nothing = has_nothing || is_empty_slot(data);
    store_polled(to, data);
  }
};

// A group: a row.
inline __device__ void copy_for_poller(const std::byte* from,
                                       std::byte* to,
                                       std::uint32_t units,
                                       ForPoller& moves) {
  for_units_loaded<Rows::BlockPerRow>(reinterpret_cast<const Vector16*>(from), units,
                                      [&](std::uint32_t unit, const Vector16& loaded) {
                                        moves.store(reinterpret_cast<Vector16*>(to) + unit, loaded);
                                      });
}

// Waits until what is polled is here: `loaded`, of which the thread awaits those that
// is_awaited(i), is at at(i). look_around(i, start) is called now and then, for one that is not
// here; `start` is that of moe::look_around. It may give up what is awaited.
template <std::uint32_t kCount, typename IsAwaited, typename At, typename LookAround>
__device__ void await_polled(Vector16 (&loaded)[kCount],
                             IsAwaited&& is_awaited,
                             At&& at,
                             LookAround&& look_around) {
  std::uint64_t start = 0;
#pragma unroll 1
  for (std::uint32_t looks = 1;; ++looks) {
    std::uint32_t lacking = kCount;
#pragma unroll
    for (std::uint32_t i = 0; i < kCount; ++i) {
      lacking = is_empty_slot(loaded[i]) && is_awaited(i) ? i : lacking;
    }
    if (lacking == kCount) {
      return;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (is_empty_slot(loaded[i]) && is_awaited(i)) {
        loaded[i] = load_polled(at(i));
      }
    }
    if (looks % kLooksPerCheck == 0) {
      start = look_around(lacking, start);
    }
  }
}

// ---- What ranks have put back

// All threads of the grid, when a dispatch has sent what others wait for: the rows of all
// dispatches before it are put back.
inline __device__ void tell_put_back(const KernelArguments& exchange, std::uint64_t number) {
  for (std::uint32_t rank = blockIdx.x; rank < exchange.shape.ranks(); rank += gridDim.x) {
    if (thread_of_block() == 0) {
      // SYNC moe-polled-rows: what the rank stores there in later calls.
      device::fence_release();
      device::store_relaxed(
          at<std::uint32_t>(exchange.memory[rank], PolledPlaces{exchange.shape}.put_back_at(
                                                       static_cast<std::uint32_t>(exchange.me))),
          static_cast<std::uint32_t>(number));
    }
  }
}

// One thread: until `rank` has put back the rows of all dispatches before `number`.
inline __device__ void await_put_back(const KernelArguments& exchange,
                                      const Call& call,
                                      std::uint32_t rank,
                                      std::uint64_t number) {
  const auto* word =
      at<std::uint32_t>(mine(exchange), PolledPlaces{exchange.shape}.put_back_at(rank));
  wait_for(
      exchange, call, rank,
      [&] {
        // SYNC moe-polled-rows: where kernels after this one store is clear.
        const std::uint32_t before = device::load_acquire(word);
        return static_cast<std::int32_t>(before - static_cast<std::uint32_t>(number)) >= 0;
      },
      [] { return false; });
}

// All threads of a block, behind a barrier that follows the headers of all ranks: clears what the
// call before has left if it was refused. `is_refused`: this one is, so what comes may stay.
inline __device__ void clear_spoilt(const KernelArguments& exchange,
                                    const Call& call,
                                    bool is_refused) {
  const Shape& shape = exchange.shape;
  const bool is_dispatch = call.step == WEFT_MOE_DISPATCH;
  std::uint64_t* word = &exchange.state->spoilt[is_dispatch ? 0 : 1];
  if (const std::uint64_t spoilt = device::load_relaxed(word); spoilt != 0) {
    if (const std::uint32_t rank = thread_of_block(); is_dispatch && rank < shape.ranks()) {
      await_put_back(exchange, call, rank, call.number);  // all that it has sent before is here
    }
    __syncthreads();
    auto* first =
        at<Vector16>(mine(exchange), is_dispatch ? PolledPlaces{shape}.row_at(spoilt, 0, 0)
                                                 : shape.partial_sum_at(spoilt, 0));
    const std::size_t units =
        (is_dispatch ? shape.arrivals() * shape.row.bytes() : shape.lanes() * shape.output_bytes) /
        kUnit;
#pragma unroll 1
    for (std::size_t unit = thread_of_block(); unit < units; unit += kThreads) {
      store_polled(first + unit, empty_slot());
    }
  }
  __syncthreads();
  if (thread_of_block() == 0) {
    device::store_relaxed(word, is_refused ? call.number : 0);
  }
}

// All threads of a block that has read the headers of all ranks, at the end of a dispatch: the next
// one stores where rows of the call kPolledTurns before it were.
inline __device__ void end_polled(const KernelArguments& exchange,
                                  const Call& call,
                                  bool is_refused) {
  if (const std::uint32_t rank = thread_of_block();
      rank < exchange.shape.ranks() && call.number + 2 > kPolledTurns) {
    await_put_back(exchange, call, rank, call.number + 2 - kPolledTurns);
  }
  clear_spoilt(exchange, call, is_refused);
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
