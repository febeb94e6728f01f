// alltoallv: as alltoall, with blocks whose sizes differ and are known only on the GPU.
//
// The members exchange their counts first, so that each knows where its blocks belong in everyone's
// dest; then every member stores into all others at once, or puts with signal if a member is not
// mapped.
#ifndef WEFT_DEVICE_UNEVEN_CUH
#define WEFT_DEVICE_UNEVEN_CUH

#include <weft/device/exchange.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

// The arguments of alltoallv; counts are in elements, n is the team's size.
template <typename T>
struct UnevenBlocks {
  T* dest;                       // symmetric: the blocks of member 0, 1, ..., without gaps
  std::size_t capacity;          // of dest; the same on all members
  const T* source;               // the blocks for member 0, 1, ..., without gaps
  const std::uint64_t* counts;   // n: of the block for each member
  std::uint64_t* counts_of_all;  // symmetric, n * n: row i becomes the counts of member i
};

namespace detail {

// Sums of a matrix of counts that other PEs have written.
struct CountMatrix {
  const std::uint64_t* counts;
  std::uint32_t size;

  __device__ std::uint64_t at(std::uint32_t from, std::uint32_t to) const {
    return load_unit<Source::Peers>(counts + std::size_t{from} * size + to);
  }

  // Of all blocks for `to` from members below `from`.
  __device__ std::uint64_t before(std::uint32_t from, std::uint32_t to) const {
    std::uint64_t sum = 0;
#pragma unroll 4
    for (std::uint32_t i = 0; i < from; ++i) {
      sum += at(i, to);
    }
    return sum;
  }

  // Of the blocks from `from` for members below `to`.
  __device__ std::uint64_t ahead_of(std::uint32_t from, std::uint32_t to) const {
    std::uint64_t sum = 0;
#pragma unroll 4
    for (std::uint32_t i = 0; i < to; ++i) {
      sum += at(from, i);
    }
    return sum;
  }

  // Whether every member's blocks fit. The same in all threads, and on all members.
  template <typename Scope>
  __device__ bool fits(std::uint64_t capacity) const {
    bool exceeds = false;
    for (std::uint32_t to = Scope::rank(); to < size; to += Scope::size()) {
      exceeds = exceeds || before(size, to) > capacity;
    }
    return !Scope::any(exceeds);
  }
};

struct UnevenBytes {
  std::byte* dest;
  const std::byte* source;
  std::size_t unit;  // bytes of an element
};

template <typename Scope>
__device__ void scatter_by_stores(const TeamState& team,
                                  TeamControl* control,
                                  const UnevenBytes& data,
                                  const CountMatrix& matrix) {
  const MeetingCall call =
      enter<Scope, Access::Stores>(team, meeting_of<Scope>(control), OperationName::Alltoall);
  const Share share = share_of<Scope>(team.size);
  for (std::uint32_t k = share.part; k < team.size; k += share.part_step) {
    const std::uint32_t i = member_after(team, k);
    copy_by_crew(moved(data.dest, delta_of_member(team, i)) + matrix.before(team.me, i) * data.unit,
                 data.source + matrix.ahead_of(team.me, i) * data.unit,
                 matrix.at(team.me, i) * data.unit, share.crew);
  }
  leave<Scope>(team, call);
}

// The exchange of counts was the sync that a call by signals begins with. A member that has all
// counts sends blocks while another still waits for counts, so their signals are counted apart.
template <typename Scope>
__device__ void scatter_by_signals(const TeamState& team,
                                   TeamControl* control,
                                   const UnevenBytes& data,
                                   const CountMatrix& matrix) {
  for (std::uint32_t k = 1; k < team.size; ++k) {
    const std::uint32_t i = member_after(team, k);
    send_with_signal<Scope>(control->uneven_arrivals,
                            data.dest + matrix.before(team.me, i) * data.unit,
                            data.source + matrix.ahead_of(team.me, i) * data.unit,
                            matrix.at(team.me, i) * data.unit, pe_of(team, i));
  }
  copy<Scope>(data.dest + matrix.before(team.me, team.me) * data.unit,
              data.source + matrix.ahead_of(team.me, team.me) * data.unit,
              matrix.at(team.me, team.me) * data.unit);
  Scope::sync();
  await_arrivals<Scope>(control->uneven_arrivals, team.size - 1, OperationName::Alltoall);
}

}  // namespace detail

// Block k of `source` goes to member k, behind the blocks of the members before this one. What
// member i sent here has counts_of_all[i * n + me] elements. False, on all members and with nothing
// moved but the counts, if the blocks for any of them exceed `capacity`.
template <typename Scope = Block, typename T>
__device__ bool alltoallv(Team team, const UnevenBlocks<T>& blocks) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const TeamState& members = detail::members_of(team);
  detail::check(OperationName::Alltoall, blocks.dest, blocks.capacity * sizeof(T), pe());
  fcollect<Scope>(team, blocks.counts_of_all, blocks.counts, members.size);
  const detail::CountMatrix matrix{blocks.counts_of_all, members.size};
  if (!matrix.fits<detail::LocalOf<Scope>>(blocks.capacity)) {
    return false;
  }
  TeamControl* control = detail::control_of(members);
  const detail::UnevenBytes data{reinterpret_cast<std::byte*>(blocks.dest),
                                 reinterpret_cast<const std::byte*>(blocks.source), sizeof(T)};
  if (detail::is_flat(members)) {
    detail::scatter_by_stores<Scope>(members, control, data, matrix);
  } else {
    detail::by_local<Scope>(control, OperationName::Alltoall, [&] {
      detail::scatter_by_signals<detail::LocalOf<Scope>>(members, control, data, matrix);
    });
  }
  return true;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_UNEVEN_CUH
