// broadcast: `dest` of every member, including the root, receives the root's `source`.
//
// Algorithm by size. Small: the root stores parcels to all members (as low_latency.cuh, with separate buffers).
// Medium: members read from the root, between entering and leaving. Large: two steps (scatter, then
// allgather): each member reads its own share from the root, then the other shares from the other members.
// The root's links then carry the data about once, instead of once per member.
//
// Parcels: only the root sends, and receives no acknowledgement of the reads. So each member, when it has left
// broadcast e, notifies all members that its buffer e is free; every block of a grid does so for its part. A root that
// starts e + 2 checks that first. In a sequence of broadcasts the notification arrives long before it is needed.
#ifndef WEFT_DEVICE_BROADCAST_CUH
#define WEFT_DEVICE_BROADCAST_CUH

#include <weft/device/exchange.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

namespace detail {

// The largest size for parcels of a scope that is no grid, at most 32 KiB; the smallest size for two steps, for teams with
// at least the given number of members. To be measured.
inline constexpr std::size_t kBroadcastParcelBytesMax = std::size_t{16} << 10U;
inline constexpr std::size_t kBroadcastHalfwayBytesMin = std::size_t{512} << 10U;
inline constexpr std::uint32_t kBroadcastHalfwayMembersMin = 4;

static_assert(kBroadcastParcelBytesMax <=
                  std::size_t{broadcast_parcels_of(kExchangeParcels)} * kParcelBytes,
              "the buffer holds it");

// Whether a broadcast goes by parcels: the root sends each to every other member.
template <typename Scope>
__device__ bool is_low_latency_broadcast(const TeamState& team, std::size_t bytes) {
  if constexpr (kIsGrid<Scope>) {
    return is_low_latency<Scope>(team, bytes) &&
           (has_wide_buffers(team) || parcels_of(bytes) <= broadcast_parcels_of(team.parcels));
  } else {
    constexpr std::size_t kMax = kLowLatencyBytesMax<Scope> < kBroadcastParcelBytesMax
                                     ? kLowLatencyBytesMax<Scope>
                                     : kBroadcastParcelBytesMax;
    return bytes <= kMax && bytes <= broadcast_parcels_of(team.parcels) * std::size_t{kParcelBytes};
  }
}

inline __device__ Parcel* broadcast_buffer(const TeamState& team,
                                           std::uint32_t count,
                                           std::uint64_t epoch) {
  return count <= broadcast_parcels_of(team.parcels) ? buffers_of(team).broadcast(epoch)
                                                     : wide_buffers_of(team)->broadcast[epoch & 1U];
}

template <typename Scope>
__device__ void send_broadcast(const TeamState& team,
                               TeamControl* control,
                               const Blocks& blocks,
                               std::uint64_t epoch) {
  using Local = LocalOf<Scope>;
  for (std::uint32_t i = Local::rank(); i < team.size; i += Local::size()) {
    if (i != team.me && epoch > 2) {
      await_at_least(&control->broadcast_done[i].value, whole(epoch - 2), OperationName::Broadcast,
                     pe_of(team, i));
    }
  }
  Local::sync();
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const auto count = static_cast<std::uint32_t>(parcels_of(bytes));
  Parcel* buffer = broadcast_buffer(team, count, epoch);
  for (std::uint32_t index = Scope::rank(); index < count; index += Scope::size()) {
    const std::uint32_t part = bytes_in_parcel(bytes, index);
    const std::uint64_t data = load_packed(blocks.source + index * kParcelBytes, part);
    Parcel* to = buffer + index;
    for (std::uint32_t k = 1; k < team.size; ++k) {
      store_relaxed_16(moved(to, delta_of(pe_of(team, member_after(team, k)))), data, epoch);
    }
    if (blocks.dest != blocks.source) {
      store_packed(blocks.dest + index * kParcelBytes, data, part);
    }
  }
}

template <typename Scope>
__device__ void receive_broadcast(const TeamState& team,
                                  const Blocks& blocks,
                                  std::uint64_t epoch,
                                  int root_pe) {
  constexpr std::uint32_t kUnroll = kParcelsTogether;
  const auto bytes = static_cast<std::uint32_t>(blocks.bytes);
  const auto count = static_cast<std::uint32_t>(parcels_of(bytes));
  const Parcel* buffer = broadcast_buffer(team, count, epoch);
  for (std::uint32_t first = Scope::rank(); first < count; first += kUnroll * Scope::size()) {
    ParcelWait<kUnroll> wait;
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t index = first + u * Scope::size();
      wait.pe[u] = root_pe;
      wait.from[u] = index < count ? buffer + index : nullptr;
    }
    wait.until(epoch, OperationName::Broadcast);
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t index = first + u * Scope::size();
      if (index < count) {
        store_packed(blocks.dest + index * kParcelBytes, wait.data[u],
                     bytes_in_parcel(bytes, index));
      }
    }
  }
}

template <typename Scope>
__device__ void broadcast_parcels(const TeamState& team,
                                  TeamControl* control,
                                  const Blocks& blocks,
                                  std::uint32_t root) {
  using Local = LocalOf<Scope>;
  if constexpr (!kIsGrid<Scope>) {
    Scope::sync();
  }
  const std::uint64_t epoch = next_call(control->broadcasts);
  if (team.me == root) {
    send_broadcast<Scope>(team, control, blocks, epoch);
  } else {
    receive_broadcast<Scope>(team, blocks, epoch, pe_of(team, root));
  }
  Local::sync();  // all parcels of this PE, or of this block, are read
  for (std::uint32_t k = Local::rank(); k < team.size; k += Local::size()) {
    const std::uint32_t i = member_after(team, k);
    add_relaxed(&moved(control, delta_of_member(team, i))->broadcast_done[team.me].value,
                tally_step<Scope>());
  }
  count_call<Scope>(control->broadcasts, epoch);  // read after the next call's sync
}

// Reads all data from the root.
template <typename Scope>
__device__ void broadcast_by_loads(const TeamState& team,
                                   TeamControl* control,
                                   const Blocks& blocks,
                                   std::uint32_t root) {
  const MeetingCall call =
      enter<Scope>(team, meeting_of<Scope>(control, false), OperationName::Broadcast);
  if (team.me != root || blocks.dest != blocks.source) {
    copy_by_crew<Source::Peers>(blocks.dest, moved(blocks.source, delta_of_member(team, root)),
                                blocks.bytes, {Scope::rank(), Scope::size()});
  }
  leave<Scope>(team, call);
}

// The byte range of the share of the k-th member after the root, 1 .. size - 1.
struct ByteRange {
  std::size_t begin;
  std::size_t bytes;
};

inline __device__ ByteRange broadcast_share(std::size_t bytes,
                                            std::uint32_t k,
                                            std::uint32_t size) {
  constexpr std::size_t kLine = 128;
  const std::size_t each = (bytes / (size - 1) + kLine) / kLine * kLine;
  const std::size_t begin = (k - 1) * each < bytes ? (k - 1) * each : bytes;
  return {begin, bytes - begin < each ? bytes - begin : each};
}

template <typename Scope>
__device__ void broadcast_halfway(const TeamState& team,
                                  TeamControl* control,
                                  const Blocks& blocks,
                                  std::uint32_t root) {
  const MeetingCall call =
      enter<Scope>(team, meeting_of<Scope>(control, true), OperationName::Broadcast);
  const std::byte* source = moved(blocks.source, delta_of_member(team, root));
  const Crew crew{Scope::rank(), Scope::size()};
  const std::uint32_t mine = (team.me + team.size - root) % team.size;  // 0: the root
  if (mine != 0) {
    const ByteRange share = broadcast_share(blocks.bytes, mine, team.size);
    copy_by_crew<Source::Peers>(blocks.dest + share.begin, source + share.begin, share.bytes, crew);
  } else if (blocks.dest != blocks.source) {
    copy_by_crew(blocks.dest, source, blocks.bytes, crew);
  }
  meet_done<Scope>(team, call, &Meeting::halfway);
  if (mine != 0) {
    const Share work = share_of<Scope>(team.size - 2);
    for (std::uint32_t j = work.part; j < team.size - 2; j += work.part_step) {
      const std::uint32_t k = (mine + j) % (team.size - 1) + 1;  // not the root, not this PE
      const ByteRange share = broadcast_share(blocks.bytes, k, team.size);
      const std::byte* from = moved(blocks.dest, delta_of_member(team, (root + k) % team.size));
      copy_by_crew<Source::Peers>(blocks.dest + share.begin, from + share.begin, share.bytes,
                                  work.crew);
    }
  }
  leave<Scope>(team, call);
}

template <typename Scope>
__device__ void broadcast(Team team, const Blocks& blocks, std::uint32_t root) {
  const TeamState& members = members_of(team);
  const OperationName operation = OperationName::Broadcast;
  check(operation, blocks.dest, blocks.bytes, pe());
  check(operation, blocks.source, blocks.bytes, pe());
  if (root >= members.size) {
    fail({FailureKind::NoSuchPe, operation, static_cast<std::int32_t>(root), blocks.dest});
  }
  if (blocks.bytes == 0) {
    return;
  }
  TeamControl* control = control_of(members);
  if (!is_flat(members)) {
    by_local<Scope>(control, operation,
                    [&] { broadcast_by_signals<LocalOf<Scope>>(team, control, blocks, root); });
  } else if (is_low_latency_broadcast<Scope>(members, blocks.bytes)) {
    by_all<Scope>(control, operation,
                  [&] { broadcast_parcels<Scope>(members, control, blocks, root); });
  } else if (blocks.bytes >= kBroadcastHalfwayBytesMin &&
             members.size >= kBroadcastHalfwayMembersMin) {
    broadcast_halfway<Scope>(members, control, blocks, root);
  } else {
    broadcast_by_loads<Scope>(members, control, blocks, root);
  }
}

}  // namespace detail

// Copies the `count` elements at `source` of member `root` to `dest` on all members. `source` is symmetric and
// is read only on the root, where it may equal `dest`.
template <typename Scope = Block, typename T>
__device__ void broadcast(Team team, T* dest, const T* source, std::size_t count, int root) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  detail::broadcast<Scope>(team,
                           {reinterpret_cast<std::byte*>(dest),
                            reinterpret_cast<const std::byte*>(source), count * sizeof(T), 0},
                           static_cast<std::uint32_t>(root));
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_BROADCAST_CUH
