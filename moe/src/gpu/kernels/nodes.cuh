// What goes to ranks of other nodes, whose memory is not mapped here. Rows, parcels and partial
// sums are staged in this PE's own symmetric memory; then one thread puts them as one message,
// whose signal is the word that the receiver looks at anyway:
//
//   rows of a dispatch   one put for each rank, or one to the relay of each node, whose ranks all
//                        look into its memory; the signal is the word of the row in slot 0
//   a run of parcels     one put; the signal is the number in the first parcel, which is staged as
//                        0
//   partial sums         one put for each rank, or one list of ranges (partial_sums.cuh); the
//                        signal is a word of that rank
//
// So a receiver looks at the first word of a message for all of it. What is staged in call e is put
// by the end of call e + 1 (finish), before call e + 2 writes there.
#pragma once

#include <weft/device.cuh>

#include <cstddef>
#include <cstdint>

#include "moe/src/gpu/kernels/call.cuh"
#include "moe/src/gpu/layout.hpp"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// Offsets are those in the memory of an exchange.
struct RemotePut {
  std::uint32_t rank;
  const std::byte* from;
  std::size_t bytes;
  std::size_t to;
  std::size_t word;  // that becomes the number of the call, after the bytes
};

// One thread.
inline __device__ void post(const KernelArguments& exchange,
                            const RemotePut& put,
                            std::uint64_t number) {
  device::put_signal_nbi<device::Thread>(
      mine(exchange) + put.to, put.from, put.bytes,
      {at<std::uint64_t>(mine(exchange), put.word), number, device::SignalOp::Set},
      exchange.state->pes[put.rank]);
}

// A parcel by itself, to any rank.
inline __device__ void send_parcel_to(const KernelArguments& exchange,
                                      std::uint32_t rank,
                                      std::size_t to,
                                      std::uint64_t data,
                                      std::uint64_t number) {
  if (!is_remote(exchange, rank)) {
    send_parcel(exchange.memory[rank] + to, data, number);
    return;
  }
  post(exchange,
       {rank, reinterpret_cast<const std::byte*>(&data), sizeof data, to, to + sizeof data},
       number);
}

// The parcel `index` of a run that begins at `staged`.
inline __device__ void stage_parcel(const KernelArguments& exchange,
                                    std::size_t staged,
                                    std::uint32_t index,
                                    std::uint64_t data,
                                    std::uint64_t number) {
  send_parcel(mine(exchange) + staged + index * kParcel, data, index == 0 ? 0 : number);
}

// A run of parcels to a rank of another node. One thread, behind a barrier of those that staged.
struct Run {
  std::size_t staged;
  std::size_t to;
  std::uint32_t count;
};

inline __device__ void post_run(const KernelArguments& exchange,
                                std::uint32_t rank,
                                const Run& run,
                                std::uint64_t number) {
  post(exchange,
       {rank, mine(exchange) + run.staged, run.count * kParcel, run.to,
        run.to + sizeof(std::uint64_t)},
       number);
}

// The header and counts of a dispatch that were staged for a rank of another node.
inline __device__ void post_counts(const KernelArguments& exchange,
                                   std::uint32_t rank,
                                   std::uint32_t parcels,
                                   std::uint64_t number) {
  const Shape& shape = exchange.shape;
  post_run(exchange, rank,
           {Staging{shape}.counts_at(number, rank),
            shape.count_at(number, static_cast<std::uint32_t>(exchange.me), 0), parcels},
           number);
}

// A parcel that is waited for, and the first of the run that it comes in if its source is on
// another node.
struct Expected {
  const std::byte* parcel;
  const std::byte* first;
};

// One thread. False if `source` does not come.
template <typename GivesUp>
__device__ bool await_parcel(const KernelArguments& exchange,
                             const Call& call,
                             std::uint32_t source,
                             const Expected& expected,
                             std::uint64_t& data,
                             GivesUp&& gives_up) {
  const bool is_far = is_remote(exchange, source);
  const std::byte* seen = is_far ? expected.first : expected.parcel;
  const bool has_come = wait_for(
      exchange, call, source, [&] { return has_parcel(seen, call.number, data); },
      static_cast<GivesUp&&>(gives_up));
  if (has_come && is_far) {
    // SYNC device-signal (pairs with include/weft/device/signal.cuh): what came before the first
    // parcel's number.
    device::fence_acquire();
    has_parcel(expected.parcel, call.number, data);
  }
  return has_come;
}

inline __device__ bool never_gives_up() {
  return false;
}

// ---- Rows

// State::staged of a rank when all its rows are staged: the sender of the header adds this less the
// number of rows.
inline constexpr std::uint32_t kWhole = 1U << 30U;

// One thread: `count` more are staged for the rank. Whoever completes them puts the rows.
inline __device__ void add_staged(const KernelArguments& exchange,
                                  std::uint64_t number,
                                  std::uint32_t rank,
                                  std::uint32_t count) {
  const Shape& shape = exchange.shape;
  State& state = *exchange.state;
  // SYNC moe-staged: the row, or how many there are, before it is counted.
  device::fence_release();
  if (atomicAdd(&state.staged[rank], count) + count != kWhole) {
    return;
  }
  // SYNC moe-staged: all of them are read by the put.
  device::fence_acquire();
  device::store_relaxed(&state.staged[rank], 0);
  const auto me = static_cast<std::uint32_t>(exchange.me);
  if (const std::uint32_t rows = device::load_relaxed(&state.staged_rows[rank]); rows > 0) {
    post(exchange,
         {rank, mine(exchange) + Staging{shape}.row_at(number, rank, 0), rows * shape.row.bytes(),
          Staging{shape}.shared_row_at(number, me, 0), shape.arrived_at(number, me, 0)},
         number);
  }
}

// All threads of a block, at the end of a kernel that receives.
inline __device__ void finish(const KernelArguments& exchange) {
  if (!kBetweenNodes || blockIdx.x != 0) {
    return;
  }
  __syncthreads();
  if (thread_of_block() == 0) {
    device::quiet();
  }
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
