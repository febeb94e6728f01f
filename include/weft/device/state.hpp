// What a kernel needs to know about the job: where the heaps of this node's GPUs are mapped, the
// teams, and the rings to the CPU. The library fills one DeviceState in weft_device_init and copies
// it into the constant memory of every .cu file that includes <weft/device.cuh>.
//
// Threads: constant between weft_device_init and weft_finalize, except the memory that the pointers
// refer to.
#ifndef WEFT_DEVICE_STATE_HPP
#define WEFT_DEVICE_STATE_HPP

#include <weft/device/ring.hpp>
#include <weft/device/standard.hpp>

namespace weft::device {

// A team's members, as one of its PEs sees them. PE i of the team is PE first + i * stride of the
// job, or pes[i] if pes is not null. Team 0 has all PEs, team 1 those of the node.
struct TeamState {
  std::uint32_t size = 0;
  std::uint32_t me = 0;
  std::uint32_t first = 0;
  std::int32_t stride = 1;
  const std::uint32_t* pes = nullptr;  // in GPU memory
  std::uint32_t id = 0;
  std::uint32_t all_mapped = 0;  // 1 if every member is reached by loads and stores
  std::uint32_t control = 0;     // where in each heap its control bytes are (control.hpp)
  std::uint32_t parcels = 0;     // how large its buffers are
};

// The four predefined ones, and 128 of the program.
inline constexpr std::uint32_t kTeamCountMax = 132;

enum class FailureKind : std::uint32_t {
  None = 0,
  NotSymmetric,  // an address outside the device heap where a symmetric one is required
  NoSuchPe,
  PeerLost,
  TimedOut,        // a wait took longer than WEFT_TIMEOUT_S
  CopyFailed,      // of a put's source or a get's destination, by a copy engine
  NotCooperative,  // a call of grid scope in a kernel whose blocks need not run at the same time
  TooManyMembers,  // of a team, for a reduction over other nodes
  SegmentNotSymmetric,  // of a list
  SegmentNotGlobal,  // the source of a long one over rails, in memory that the proxy cannot reach
  CommandRefused,    // by the proxy: it names no PE, or memory that is not the heap's
  RankMissing,       // from a call of weft::moe in a graph
};

// What a kernel was doing; the host maps it to a name.
enum class OperationName : std::uint32_t {
  None = 0,
  Put,
  Get,
  P,
  G,
  PutSignal,
  Signal,
  Atomic,
  WaitUntil,
  Fence,
  Quiet,
  Sync,
  Barrier,
  Alltoall,
  Broadcast,
  Fcollect,
  Reduce,
  ReduceScatter,
  Putv,
  PutvSignal,
  MoeDispatch,
  MoeCombine,
};

// Tells the host why a kernel aborted. In pinned memory: outlives the kernel and its CUDA context.
struct FailureRecord {
  std::uint32_t kind = 0;       // FailureKind; written last
  std::uint32_t operation = 0;  // OperationName
  std::int32_t pe = -1;         // the PE concerned; -1: none in particular
  std::uint32_t block = 0;
  std::uint64_t address = 0;
  std::uint64_t expected = 0;  // waits: the value compared with; otherwise the number of bytes
  std::uint64_t seen = 0;      // waits: the value of the word; lists: the segment's number
  std::uint32_t waited_ms = 0;
};

// Tells the host that a thread has been waiting for long. In pinned memory; a later report
// overwrites it.
struct WaitRecord {
  std::uint32_t number = 0;  // of reports; written last
  FailureRecord wait;        // without a kind
};

// In pinned memory, written by the CPU. A waiting kernel polls it periodically.
struct AbortWord {
  std::uint32_t kind = 0;  // FailureKind; written last
  std::int32_t pe = -1;    // the lost PE
};

// What this GPU's threads share to report waits; in GPU memory.
struct WaitReports {
  std::uint32_t last_ms = 0;  // of the GPU's timer, never 0 after the first report
  std::uint32_t number = 0;
};

inline constexpr std::uint32_t kRingCountMax = 16;

struct DeviceState;

// What every call needs. Files that are compiled with -rdc share the GPU's constant memory, 64 KiB,
// with all others of their program, so each has no more than this there: 700 files fit.
struct HotState {
  std::byte* heap = nullptr;  // this PE's, as mapped here; control bytes first. Null before init
  std::uint64_t heap_bytes = 0;
  // The heap's address at a mapped PE: + window_offset + (pe - first_mapped) * stride.
  std::int64_t window_offset = 0;
  std::uint64_t stride = 0;
  std::uint32_t first_mapped = 0;
  std::uint32_t mapped_count = 0;
  // Used instead if the mappings have no common stride, indexed by PE; kNotMapped if there is none.
  const std::int64_t* deltas = nullptr;
  std::uint32_t pe = 0;
  std::uint32_t pe_count = 0;
  std::uint32_t ring_count = 0;     // to other nodes, a power of two; 0 if every PE is mapped
  std::uint32_t ring_capacity = 0;  // of each of these rings, and of the inbox, which follows them
  std::byte* rings_far = nullptr;
  std::byte* rings_near = nullptr;
  const DeviceState* whole = nullptr;  // a copy in GPU memory

  // Ring `index`; the inbox has the index ring_count.
  WEFT_HOST_DEVICE RingView ring(std::uint32_t index) const {
    return RingView{rings_far, rings_near, ring_capacity}.after(index);
  }
};

struct DeviceState : HotState {
  TeamState world;
  const TeamState* teams = nullptr;  // kTeamCountMax of them, in GPU memory
  // How kernels abort.
  FailureRecord* failure = nullptr;
  std::uint32_t* failure_claim = nullptr;  // in GPU memory: the claimant writes the record
  const AbortWord* abort = nullptr;
  // How they report that they wait.
  WaitRecord* waiting = nullptr;
  WaitReports* wait_reports = nullptr;
  std::uint32_t wait_report_ms = 0;   // 0: never
  std::uint32_t wait_timeout_ms = 0;  // 0: never
  // Puts to other nodes up to this size travel in payloads of commands; longer ones are fetched by
  // address. Read it in `whole`: the library learns it after the state has gone into constant
  // memory.
  std::uint32_t carried_bytes_max = kPayloadBytes;
};

// Raise it when DeviceState or anything that it points to changes: TeamState, TeamControl,
// RingView, the records, the commands. libweft refuses files of device code that were compiled with
// another.
inline constexpr std::uint64_t kLayoutVersion = 11;
inline constexpr std::uint64_t kLayout = kLayoutVersion << 32U | sizeof(DeviceState);

inline constexpr std::int64_t kNotMapped = INT64_MIN;

}  // namespace weft::device

#endif  // WEFT_DEVICE_STATE_HPP
