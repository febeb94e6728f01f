// putv: many segments to one PE as one operation, as writev writes buffers. Scattered pages of a
// cache, rows for the experts of a peer, the edges of a halo. A mapped peer's memory is written by
// all threads of the scope; another node is given one command for up to 21 segments, instead of one
// for each.
//
//   weft::device::Segment pages[64];  // {where at the peer, where here, bytes}, in any memory that
//                                     // the scope can read
//   weft::device::putv_signal_nbi<weft::device::Warp>(
//       pages, 64, {arrived, 1, weft::device::SignalOp::Add}, pe);
//
// Completion: as put, put_nbi, put_signal and put_signal_nbi, of all segments. The list may be
// changed when the call returns in every thread of the scope. Segments are not ordered among
// themselves, and a signal follows all of them. An empty list puts nothing; its signal is given.
// Between nodes a source of more than 480 bytes is in global memory.
#ifndef WEFT_DEVICE_PUTV_CUH
#define WEFT_DEVICE_PUTV_CUH

#include <weft/device/cold_call.cuh>
#include <weft/device/copy.cuh>
#include <weft/device/peers.cuh>
#include <weft/device/remote_list.cuh>
#include <weft/device/signal.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {
namespace detail {

// The size of most segments, as far as three of them tell: the one in the middle of the first, the
// middle and the last.
inline __device__ std::size_t usual_bytes(const remote::List& list) {
  const std::size_t a = list.segments[0].bytes;
  const std::size_t b = list.segments[list.count / 2].bytes;
  const std::size_t c = list.segments[list.count - 1].bytes;
  const std::size_t low = a < b ? a : b;
  const std::size_t high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

// How many threads share a segment of the usual size: one for each 16 bytes, and more if there are
// fewer segments than that leaves groups for. A power of two, or the whole scope.
template <typename Scope>
__device__ std::uint32_t threads_for_each(const remote::List& list, std::size_t usual) {
  const std::uint32_t all = Scope::size();
  const std::size_t units = (usual + 15) / 16;
  std::uint32_t threads = 1;
  while (threads < all && ((threads < units && threads < 32) || threads * list.count < all)) {
    threads *= 2;
  }
  return threads < all ? threads : all;
}

// Returns when every thread of the scope has done its part. Segments that are much longer than
// usual are left to the whole scope, since a group of few threads would still copy one when all
// others are done.
template <typename Scope>
__device__ void copy_list(const remote::List& list,
                          std::int64_t delta,
                          OperationName operation,
                          int pe) {
  const std::size_t usual = usual_bytes(list);
  const std::uint32_t threads = threads_for_each<Scope>(list, usual);
  const std::uint32_t groups = Scope::size() / threads;
  const std::uint32_t group = Scope::rank() / threads;
  // 8 times 16 bytes for each thread, and 4 times the usual.
  const std::size_t most = usual < 32 * threads ? std::size_t{128} * threads : 4 * usual;
  bool has_long = false;
  for (std::size_t i = group; group < groups && i < list.count; i += groups) {
    const Segment segment = list.segments[i];
    check_segment(operation, segment, i, pe);
    if (groups > 1 && segment.bytes > most) {
      has_long = true;
    } else {
      copy_by_crew(moved(segment.dest, delta), segment.source, segment.bytes,
                   {Scope::rank() % threads, threads});
    }
  }
  if (!Scope::any(has_long)) {
    return;
  }
  for (std::size_t i = 0; i < list.count; ++i) {
    const Segment segment = list.segments[i];
    if (segment.bytes > most) {
      copy_by_crew(moved(segment.dest, delta), segment.source, segment.bytes,
                   {Scope::rank(), Scope::size()});
    }
  }
  Scope::sync();
}

template <typename Scope>
__device__ void put_list(const remote::List& list,
                         const Signal& signal,
                         int pe,
                         remote::Wait wait) {
  const bool has_signal = signal.word != nullptr;
  const OperationName operation = has_signal ? OperationName::PutvSignal : OperationName::Putv;
  const void* word = has_signal ? static_cast<const void*>(signal.word) : state().heap;
  check(operation, word, has_signal ? sizeof(std::uint64_t) : 0, pe);
  const std::int64_t delta = delta_of(pe);
  if (delta == kNotMapped && list.count != 0) {
    cold_call<&remote::putv<Scope>>(
        list, remote::SignalUpdate{signal.word, signal.value, signal.op}, pe, wait);
    Scope::sync();
    return;
  }
  if (list.count != 0) {
    copy_list<Scope>(list, delta, operation, pe);
  } else {
    Scope::sync();
  }
  if (!has_signal || !is_leader<Scope>()) {
    return;
  }
  if (delta == kNotMapped) {
    cold_call<&remote::signal>(remote::SignalUpdate{signal.word, signal.value, signal.op}, pe,
                               remote::SignalOrder::None);
    return;
  }
  // SYNC device-signal (pairs with include/weft/device/wait.cuh): the whole scope's stores
  fence_release();
  apply_signal(moved(signal.word, delta), signal.value, signal.op);
}

}  // namespace detail

template <typename Scope = Thread>
__device__ void putv_nbi(const Segment* segments, std::size_t count, int pe) {
  detail::put_list<Scope>({segments, count}, Signal{}, pe, remote::Wait::No);
}

template <typename Scope = Thread>
__device__ void putv(const Segment* segments, std::size_t count, int pe) {
  detail::put_list<Scope>({segments, count}, Signal{}, pe, remote::Wait::Yes);
}

template <typename Scope = Thread>
__device__ void putv_signal_nbi(const Segment* segments,
                                std::size_t count,
                                const Signal& signal,
                                int pe) {
  detail::put_list<Scope>({segments, count}, signal, pe, remote::Wait::No);
}

template <typename Scope = Thread>
__device__ void putv_signal(const Segment* segments,
                            std::size_t count,
                            const Signal& signal,
                            int pe) {
  detail::put_list<Scope>({segments, count}, signal, pe, remote::Wait::Yes);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_PUTV_CUH
