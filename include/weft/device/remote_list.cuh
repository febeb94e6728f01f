// Lists of segments on the path to PEs whose memory is not mapped here: a command for as many as
// its payload has room for (list.hpp). The commands of a list follow each other in one ring, so the
// last one's signal and reply stand for all.
#ifndef WEFT_DEVICE_REMOTE_LIST_CUH
#define WEFT_DEVICE_REMOTE_LIST_CUH

#include <weft/device/list.hpp>
#include <weft/device/remote.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

// `bytes` from `source` to the symmetric `dest`: the same as weft_segment of the host.
struct Segment {
  void* dest;
  const void* source;
  std::size_t bytes;
};

namespace detail {

inline __device__ void check_segment(OperationName operation,
                                     const Segment& segment,
                                     std::size_t number,
                                     int pe) {
#if WEFT_DEVICE_CHECKS
  const std::uint64_t offset = offset_of(segment.dest);
  const std::uint64_t size = state().heap_bytes;
  if (segment.bytes != 0 && (offset >= size || segment.bytes > size - offset)) {
    fail({FailureKind::SegmentNotSymmetric, operation, pe, segment.dest, segment.bytes,
          static_cast<std::uint32_t>(number < 0xffff ? number : 0xffff)});
  }
#endif
}

}  // namespace detail

namespace remote {

struct List {
  const Segment* segments;
  std::size_t count;
};

// Fills a payload with the list's next segments, from number `first` on; returns how many. All
// threads of the crew walk the list, and share what is to be written.
inline __device__ std::uint32_t fill_list(std::byte* payload,
                                          const List& list,
                                          std::size_t first,
                                          OperationName operation,
                                          int pe,
                                          detail::Crew crew) {
  ListWalk walk;
  for (std::size_t i = first; i < list.count; ++i) {
    const Segment segment = list.segments[i];
    detail::check_segment(operation, segment, i, pe);
    if (!walk.add(segment.bytes)) {
      break;
    }
    const std::uint32_t entry = walk.count - 1;
    if (ListWalk::is_carried(segment.bytes)) {
      detail::copy_by_crew<Source::Mine, 1>(payload + walk.data, segment.source, segment.bytes,
                                            crew);
    } else if (__isGlobal(segment.source) == 0) {
      detail::fail({FailureKind::SegmentNotGlobal, operation, pe, segment.source, segment.bytes,
                    static_cast<std::uint32_t>(i < 0xffff ? i : 0xffff)});
    }
    if (crew.rank == entry % crew.size) {
      auto* words = reinterpret_cast<volatile std::uint64_t*>(payload + entry * sizeof(ListEntry));
      words[0] = offset(segment.dest);
      words[1] = reinterpret_cast<std::uint64_t>(segment.source);
      words[2] = segment.bytes;
    }
  }
  return walk.count;
}

// Without a word there is no signal.
inline __device__ Command list_command(SignalUpdate update, int pe, Wait wait) {
  Command command;
  command.kind = CommandKind::PutList;
  command.pe = static_cast<std::uint32_t>(pe);
  command.words[PutListCommand::kListBytes] = kPayloadBytes;
  if (update.word != nullptr) {
    command.flags = kSignalAfter;
    command.words[WordUpdate::kWordOffset] = offset(update.word);
    command.words[WordUpdate::kOperand] = update.value;
    command.op = update.op == SignalOp::Set ? AtomicOp::Set : AtomicOp::Add;
  }
  command.flags |= wait == Wait::Yes ? kReplyWanted : 0;
  return command;
}

// The list is not empty.
template <typename Scope>
__device__ __noinline__ void putv(List list, SignalUpdate update, int pe, Wait wait) {
  using Crew = Carriers<Scope>;
  const std::uint32_t rank = Scope::rank();
  if (rank >= Crew::count()) {
    return;
  }
  const OperationName operation =
      update.word == nullptr ? OperationName::Putv : OperationName::PutvSignal;
  const std::uint32_t ring = own_ring();
  std::size_t done = 0;
  while (done < list.count) {
    std::uint64_t position = rank == 0 ? take_slot(ring, pe) : 0;
    position = Crew::from_leader(position);
    const std::uint32_t taken = fill_list(state().ring(ring).payload(position), list, done,
                                          operation, pe, {rank, Crew::count()});
    done += taken;
    Crew::release();  // also for the sources that the proxy fetches
    if (rank == 0) {
      const bool is_last = done == list.count;
      Command command = list_command(is_last ? update : SignalUpdate{nullptr, 0, SignalOp::Set}, pe,
                                     is_last ? wait : Wait::No);
      command.words[PutListCommand::kEntryCount] = taken;
      publish_with_payload(ring, position, command);
      if (is_last && wait == Wait::Yes) {
        wait_for_reply(ring, position, operation, pe);
      }
    }
  }
}

}  // namespace remote

}  // namespace weft::device

#endif  // WEFT_DEVICE_REMOTE_LIST_CUH
