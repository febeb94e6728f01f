// reduce and reduce_scatter: elementwise over all members, with an operation of reduction.cuh.
//
// Algorithm by size. Small and medium: parcels (reduce_parcels.cuh). Larger: each member combines
// its share of the elements, reading them on all members, and (reduce) stores the results to all,
// between entering and leaving. Rounds through the scratch memory if a member is not mapped.
#ifndef WEFT_DEVICE_REDUCE_CUH
#define WEFT_DEVICE_REDUCE_CUH

#include <weft/device/exchange.cuh>
#include <weft/device/reduce_parcels.cuh>
#include <weft/device/reduction.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

namespace detail {

template <typename Scope, typename Op, typename T>
__device__ void reduce_by_loads(const TeamState& team,
                                TeamControl* control,
                                const ReduceCall<T>& call) {
  const MeetingCall meeting = enter<Scope>(team, meeting_of<Scope>(control), call.operation);
  if (call.source_stride != 0) {
    reduce_range<Scope, Op, T, Receivers::Me>(
        team, call.dest, call.source + team.me * call.source_stride, call.count);
  } else {
    constexpr std::size_t kLine = 128 / sizeof(T);
    const std::size_t each = ((call.count + team.size - 1) / team.size + kLine - 1) / kLine * kLine;
    const std::size_t begin = team.me * each < call.count ? team.me * each : call.count;
    const std::size_t count = call.count - begin < each ? call.count - begin : each;
    reduce_range<Scope, Op, T, Receivers::All>(team, call.dest + begin, call.source + begin, count);
  }
  leave<Scope>(team, meeting);
}

// Chunk by chunk: every member's part of this PE's block is put into its scratch memory and
// combined from there.
template <typename Scope, typename Op, typename T>
__device__ void reduce_by_signals(Team team, TeamControl* control, const ReduceCall<T>& call) {
  const TeamState& members = members_of(team);
  const TeamBuffers buffers = buffers_of(members);
  auto* scratch = reinterpret_cast<T*>(buffers.scratch());
  const std::size_t room = buffers.scratch_bytes() / sizeof(T) / members.size;
  if (room == 0) {
    fail({FailureKind::TooManyMembers, call.operation, -1, call.dest, members.size});
  }
  for (std::size_t first = 0; first < call.count; first += room) {
    const std::size_t count = call.count - first < room ? call.count - first : room;
    sync<Scope>(team);  // the scratch memory has been read
    for (std::uint32_t k = 1; k < members.size; ++k) {
      const std::uint32_t i = member_after(members, k);
      put_signal_nbi<Scope>(
          scratch + members.me * room, call.source + i * call.source_stride + first, count,
          {&control->arrivals.signals.value, 1, SignalOp::Add}, pe_of(members, i));
    }
    Scope::sync();
    await_arrivals<Scope>(control->arrivals, members.size - 1, call.operation);
    const T* mine = call.source + members.me * call.source_stride + first;
    for (std::size_t e = Scope::rank(); e < count; e += Scope::size()) {
      T result{};
      for (std::uint32_t i = 0; i < members.size; ++i) {
        const T value = i == members.me ? mine[e] : load_from(scratch + i * room + e);
        result = i == 0 ? value : Op::apply(result, value);
      }
      call.dest[first + e] = result;
    }
    Scope::sync();
  }
}

template <typename Scope, typename Op, typename T>
__device__ void reduce(Team team, const ReduceCall<T>& call) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8,
                "elements of 1, 2, 4 or 8 bytes");
  const TeamState& members = members_of(team);
  const std::size_t bytes = call.count * sizeof(T);
  check(call.operation, call.dest, bytes, pe());
  check(call.operation, call.source, call.source_stride == 0 ? bytes : bytes * members.size, pe());
  if (bytes == 0) {
    return;
  }
  TeamControl* control = control_of(members);
  if (!is_flat(members)) {
    by_local<Scope>(control, call.operation,
                    [&] { reduce_by_signals<LocalOf<Scope>, Op>(team, control, call); });
  } else if (const Blocks blocks = blocks_of(call);
             call.source_stride == 0 && takes_two_trips<Scope>(members, bytes)) {
    if constexpr (kIsGrid<Scope>) {
      by_all<Scope>(control, call.operation, [&] {
        reduce_in_two_trips<Scope, Op, T>(members, control, blocks, call.operation);
      });
    }
  } else if (goes_by_parcels<Scope>(members, bytes)) {
    by_all<Scope>(control, call.operation,
                  [&] { reduce_parcels<Scope, Op, T>(members, control, blocks, call.operation); });
  } else {
    reduce_by_loads<Scope, Op>(members, control, call);
  }
}

}  // namespace detail

// Combines the `count` elements at `source` of all members into `dest` on all members. `dest` may
// equal `source`; other overlap is not allowed. Both are symmetric.
template <typename Scope, typename Op, typename T>
__device__ void reduce(Team team, T* dest, const T* source, std::size_t count) {
  detail::reduce<Scope, Op, T>(team, {dest, source, count, 0, OperationName::Reduce});
}

// Combines block k of all members' `source` into `dest` on member k; blocks have `count` elements.
// Both are symmetric and do not overlap.
template <typename Scope, typename Op, typename T>
__device__ void reduce_scatter(Team team, T* dest, const T* source, std::size_t count) {
  detail::reduce<Scope, Op, T>(team, {dest, source, count, count, OperationName::ReduceScatter});
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_REDUCE_CUH
