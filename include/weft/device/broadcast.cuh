// broadcast: `dest` of every member, including the root, receives the root's `source`.
//
// Algorithm by size. Small: the root stores parcels to all members (as low_latency.cuh, with
// separate buffers). Where there are many, a grid's members forward a share of them. Large: by
// shares, between entering and leaving: each member reads its share from the root and stores it to
// all others, so the root's links carry the data once. With two members, and for a block of medium
// size, the others read all of it from the root.
//
// Parcels: only the root sends, and receives no acknowledgement of the reads. So each member, when
// it has left broadcast e, notifies all members that its buffer e is free; every block of a grid
// does so for its part. A root that starts e + 2 checks that first. In a sequence of broadcasts the
// notification arrives long before it is needed.
#ifndef WEFT_DEVICE_BROADCAST_CUH
#define WEFT_DEVICE_BROADCAST_CUH

#include <weft/device/exchange.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

namespace detail {

// The largest size for parcels of a scope that is no grid, at most 32 KiB; from how many for all
// members together a grid forwards parcels; and for shares the least number of members, and of
// bytes of a scope that is no grid (docs/PERFORMANCE.md).
inline constexpr std::size_t kBroadcastParcelBytesMax = std::size_t{16} << 10U;
inline constexpr std::uint32_t kForwardedParcelsMin = 98304;
inline constexpr std::uint32_t kBroadcastShareMembersMin = 3;
inline constexpr std::size_t kBroadcastShareBytesMin = std::size_t{512} << 10U;

static_assert(kBroadcastParcelBytesMax <=
                  std::size_t{broadcast_parcels_of(kExchangeParcels)} * kParcelBytes,
              "the buffer holds it");

// Whether a broadcast goes by parcels: the root sends each to every other member.
template <typename Scope>
__device__ bool is_low_latency_broadcast(const TeamState& team, std::size_t bytes) {
  if constexpr (kIsGrid<Scope>) {
    const std::uint32_t room = grid_parcels_of(team.id, broadcast_parcels_of(team.parcels));
    return bytes <= std::size_t{room} * kParcelBytes;
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

// Every member has left the call before the last, whose buffer this one uses. The first two calls
// find it so.
template <typename Scope>
__device__ void await_buffers(const TeamState& team, TeamControl* control, std::uint64_t epoch) {
  using Local = LocalOf<Scope>;
  for (std::uint32_t i = Local::rank(); i < team.size; i += Local::size()) {
    if (i != team.me) {
      await_at_least(&control->broadcast_done[i].value, whole(epoch - 2), OperationName::Broadcast,
                     pe_of(team, i));
    }
  }
  Local::sync();
}

struct BroadcastCall {
  Blocks blocks;
  Parcel* buffer;
  std::uint64_t epoch;
  std::uint32_t root;
};

// Sends `parcels` to the members that come at `steps` after this PE.
template <typename Scope>
__device__ void send_broadcast(const TeamState& team,
                               const BroadcastCall& call,
                               Range parcels,
                               Range steps) {
  const auto bytes = static_cast<std::uint32_t>(call.blocks.bytes);
  for (std::uint32_t index = parcels.begin + Scope::rank(); index < parcels.end;
       index += Scope::size()) {
    const std::uint32_t part = bytes_in_parcel(bytes, index);
    const std::uint64_t data = load_packed(call.blocks.source + index * kParcelBytes, part);
    for (std::uint32_t k = steps.begin; k < steps.end; ++k) {
      Parcel* to = moved(call.buffer, delta_of(pe_of(team, member_after(team, k))));
      store_relaxed_16(to + index, data, call.epoch);
    }
    if (call.blocks.dest != call.blocks.source) {
      store_packed(call.blocks.dest + index * kParcelBytes, data, part);
    }
  }
}

// Receives `parcels` from member `from`, kUnroll at once, and sends them on to the others, if it
// forwards.
template <typename Scope, std::uint32_t kUnroll, bool kForwards>
__device__ void receive_broadcast(const TeamState& team,
                                  const BroadcastCall& call,
                                  Range parcels,
                                  std::uint32_t from) {
  const auto bytes = static_cast<std::uint32_t>(call.blocks.bytes);
  const int pe = pe_of(team, from);
  for (std::uint32_t first = parcels.begin + Scope::rank(); first < parcels.end;
       first += kUnroll * Scope::size()) {
    ParcelWait<kUnroll> wait;
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      const std::uint32_t index = first + u * Scope::size();
      wait.pe[u] = pe;
      wait.from[u] = index < parcels.end ? call.buffer + index : nullptr;
    }
    wait.until(call.epoch, OperationName::Broadcast);
    for (std::uint32_t k = 1; kForwards && k < team.size; ++k) {
      const std::uint32_t member = member_after(team, k);
      if (member != call.root) {
        Parcel* to = moved(call.buffer, delta_of(pe_of(team, member)));
#pragma unroll
        for (std::uint32_t u = 0; u < kUnroll; ++u) {
          if (const std::uint32_t index = first + u * Scope::size(); index < parcels.end) {
            store_relaxed_16(to + index, wait.data[u], call.epoch);
          }
        }
      }
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      if (const std::uint32_t index = first + u * Scope::size(); index < parcels.end) {
        store_packed(call.blocks.dest + index * kParcelBytes, wait.data[u],
                     bytes_in_parcel(bytes, index));
      }
    }
  }
}

// ---- Forwarded parcels: the root sends each to one member, which stores it to the others, too.
// One more trip, but the root's links carry the data once. A member's buffer is free when the root
// has seen so: a forwarder's parcels follow the root's.

// Which parcels the k-th member after the root forwards, 1 .. size - 1.
inline __device__ Range forwarded_by(const TeamState& team, std::uint32_t count, std::uint32_t k) {
  return part_of(count, (count + team.size - 2) / (team.size - 1), k - 1);
}

inline __device__ bool is_forwarded(const TeamState& team, std::uint32_t count) {
  return team.size > 2 && count * (team.size - 1) >= kForwardedParcelsMin;
}

template <typename Scope>
__device__ void send_shares(const TeamState& team, const BroadcastCall& call, std::uint32_t count) {
  for (std::uint32_t k = 1; k < team.size; ++k) {
    send_broadcast<Scope>(team, call, forwarded_by(team, count, k), {k, k + 1});
  }
}

// The own share first, then those of the members after this one.
template <typename Scope>
__device__ void receive_shares(const TeamState& team,
                               const BroadcastCall& call,
                               std::uint32_t count) {
  const std::uint32_t mine = (team.me + team.size - call.root) % team.size;
  receive_broadcast<Scope, 2, true>(team, call, forwarded_by(team, count, mine), call.root);
  for (std::uint32_t j = 0; j < team.size - 2; ++j) {
    const std::uint32_t k = (mine + j) % (team.size - 1) + 1;
    receive_broadcast<Scope, 2, false>(team, call, forwarded_by(team, count, k),
                                       (call.root + k) % team.size);
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
    await_buffers<Scope>(team, control, epoch);
  }
  const auto count = static_cast<std::uint32_t>(parcels_of(blocks.bytes));
  const BroadcastCall call{blocks, broadcast_buffer(team, count, epoch), epoch, root};
  if (kIsGrid<Scope> && is_forwarded(team, count)) {
    if (team.me == root) {
      send_shares<Scope>(team, call, count);
    } else {
      receive_shares<Scope>(team, call, count);
    }
  } else if (team.me == root) {
    send_broadcast<Scope>(team, call, {0, count}, {1, team.size});
  } else {
    constexpr std::uint32_t kTogether = kIsGrid<Scope> ? kParcelsTogether : 2;
    receive_broadcast<Scope, kTogether, false>(team, call, {0, count}, root);
  }
  Local::sync();  // all parcels of this PE, or of this block, are read
  for (std::uint32_t k = Local::rank(); k < team.size; k += Local::size()) {
    const std::uint32_t i = member_after(team, k);
    add_relaxed(&moved(control, delta_of_member(team, i))->broadcast_done[team.me].value,
                tally_step<Scope>());
  }
  count_call<Scope>(control->broadcasts, epoch);  // read after the next call's sync
}

// Copies the root's data for itself, by a quarter of a grid's blocks: with all of them the others'
// loads are slower, and 256 MiB took 812 us instead of 764 on four H100.
template <typename Scope>
__device__ void copy_of_root(const Blocks& blocks) {
  if constexpr (kIsGrid<Scope>) {
    const std::uint32_t copying = (Grid::block_count() + 3) / 4;
    if (Grid::block() < copying) {
      copy_by_crew(blocks.dest, blocks.source, blocks.bytes,
                   {Grid::rank(), copying * Block::size()});
    }
  } else {
    copy<Scope>(blocks.dest, blocks.source, blocks.bytes);
  }
}

// Reads all data from the root.
template <typename Scope>
__device__ void broadcast_by_loads(const TeamState& team,
                                   TeamControl* control,
                                   const Blocks& blocks,
                                   std::uint32_t root) {
  const MeetingCall call = enter<Scope>(team, meeting_of<Scope>(control), OperationName::Broadcast);
  if (team.me != root) {
    copy_by_crew<Source::Peers>(blocks.dest, moved(blocks.source, delta_of_member(team, root)),
                                blocks.bytes, {Scope::rank(), Scope::size()});
  } else if (blocks.dest != blocks.source) {
    copy_of_root<Scope>(blocks);
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

// kCount units of the root, `step` apart: all loads are in flight before the first store, and each
// is stored to every member but the root.
template <std::uint32_t kCount, typename Unit>
__device__ void spread_together(
    const TeamState& team, std::uint32_t root, Unit* dest, const Unit* source, std::size_t step) {
  Unit values[kCount];
#pragma unroll
  for (std::uint32_t u = 0; u < kCount; ++u) {
    values[u] = load_unit<Source::Peers>(source + u * step);
  }
  for (std::uint32_t k = 0; k < team.size; ++k) {
    const std::uint32_t member = member_after(team, k);
    if (member != root) {
      Unit* to = moved(dest, delta_of_member(team, member));
#pragma unroll
      for (std::uint32_t u = 0; u < kCount; ++u) {
        store_unit(to + u * step, values[u]);
      }
    }
  }
}

template <typename Unit>
__device__ void spread_units(const TeamState& team,
                             std::uint32_t root,
                             std::byte* dest,
                             const std::byte* source,
                             std::size_t count,
                             Crew crew) {
  auto* to = reinterpret_cast<Unit*>(dest);
  const auto* from = reinterpret_cast<const Unit*>(source);
  const std::size_t step = crew.size;
  std::size_t i = crew.rank;
  for (; i + step < count; i += 2 * step) {
    spread_together<2>(team, root, to + i, from + i, step);
  }
  if (i < count) {
    spread_together<1>(team, root, to + i, from + i, step);
  }
}

template <typename Unit>
__device__ void spread_by(const TeamState& team,
                          std::uint32_t root,
                          std::byte* dest,
                          const std::byte* source,
                          std::size_t bytes,
                          Crew crew) {
  const std::size_t to_unit = -reinterpret_cast<std::uint64_t>(dest) & (sizeof(Unit) - 1);
  const std::size_t head = to_unit < bytes ? to_unit : bytes;
  const std::size_t units = (bytes - head) / sizeof(Unit);
  const std::size_t done = head + units * sizeof(Unit);
  spread_units<std::uint8_t>(team, root, dest, source, head, crew);
  spread_units<Unit>(team, root, dest + head, source + head, units, crew);
  spread_units<std::uint8_t>(team, root, dest + done, source + done, bytes - done, crew);
}

// Each member but the root reads its share from the root and stores it to all of them.
template <typename Scope>
__device__ void broadcast_by_shares(const TeamState& team,
                                    TeamControl* control,
                                    const Blocks& blocks,
                                    std::uint32_t root) {
  const MeetingCall call = enter<Scope>(team, meeting_of<Scope>(control), OperationName::Broadcast);
  const std::byte* source = moved(blocks.source, delta_of_member(team, root));
  const Crew crew{Scope::rank(), Scope::size()};
  const std::uint32_t mine = (team.me + team.size - root) % team.size;  // 0: the root
  if (mine != 0) {
    const ByteRange share = broadcast_share(blocks.bytes, mine, team.size);
    std::byte* to = blocks.dest + share.begin;
    const std::byte* from = source + share.begin;
    const std::uint64_t apart =
        reinterpret_cast<std::uint64_t>(to) ^ reinterpret_cast<std::uint64_t>(from);
    if ((apart & 15U) == 0) {
      spread_by<Vector16>(team, root, to, from, share.bytes, crew);
    } else if ((apart & 3U) == 0) {
      spread_by<std::uint32_t>(team, root, to, from, share.bytes, crew);
    } else {
      spread_by<std::uint8_t>(team, root, to, from, share.bytes, crew);
    }
  } else if (blocks.dest != blocks.source) {
    copy_of_root<Scope>(blocks);
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
  } else if (members.size >= kBroadcastShareMembersMin &&
             (kIsGrid<Scope> || blocks.bytes >= kBroadcastShareBytesMin)) {
    broadcast_by_shares<Scope>(members, control, blocks, root);
  } else {
    broadcast_by_loads<Scope>(members, control, blocks, root);
  }
}

}  // namespace detail

// Copies the `count` elements at `source` of member `root` to `dest` on all members. `source` is
// symmetric and is read only on the root, where it may equal `dest`.
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
