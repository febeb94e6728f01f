// How a kernel aborts on an error: it writes one record for the host and traps. The CUDA context is
// then lost, as after any fault in a kernel; weft_device_check and the library's own log report the
// cause.
//
// Threads: any; the first one to fail writes the record.
#ifndef WEFT_DEVICE_FAILURE_CUH
#define WEFT_DEVICE_FAILURE_CUH

#include <weft/device/access.cuh>
#include <weft/device/module.cuh>
#include <weft/device/scope.cuh>
#include <weft/device/standard.hpp>

namespace weft::device::detail {

// The operation that failed.
struct Failure {
  FailureKind kind = FailureKind::None;
  OperationName operation = OperationName::None;
  std::int32_t pe = -1;
  const void* address = nullptr;
  std::uint64_t expected = 0;
  std::uint32_t word_bytes =
      8;  // of the word at `address`, for waits; for lists the segment's number
};

// How long later failing threads give the first one to write its record.
inline constexpr std::uint64_t kRecordNs = 1'000'000;

// FailureKind and OperationName in 8 bits each, and the bytes of the word in 16. Passed in
// registers, as the rest of a Failure: a structure in memory would cost callers a stack even if
// they never fail.
inline __device__ std::uint32_t packed(const Failure& failure) {
  return static_cast<std::uint32_t>(failure.kind) |
         static_cast<std::uint32_t>(failure.operation) << 8U | failure.word_bytes << 16U;
}

inline __device__ void fill_record(FailureRecord& record,
                                   std::uint32_t what,
                                   std::int32_t pe,
                                   const void* address,
                                   std::uint64_t expected) {
  record.operation = what >> 8U & 0xffU;
  record.pe = pe;
  record.block = Grid::block();
  record.address = reinterpret_cast<std::uint64_t>(address);
  record.expected = expected;
  const auto kind = static_cast<FailureKind>(what & 0xffU);
  if (kind == FailureKind::SegmentNotSymmetric || kind == FailureKind::SegmentNotGlobal) {
    record.seen = what >> 16U;
  }
}

inline __device__ __noinline__ void end_kernel(std::uint32_t what,
                                               std::int32_t pe,
                                               const void* address,
                                               std::uint64_t expected) {
  if (state().heap == nullptr) {
    printf("weft: a kernel made a call before weft_device_init\n");
    __trap();
  }
  FailureRecord* record = whole_state().failure;
  if (atomicCAS(whole_state().failure_claim, 0U, 1U) == 0) {
    fill_record(*record, what, pe, address, expected);
    // SYNC failure-record (pairs with src/runtime/device/watch.cpp): `kind` is written last.
    fence_release();
    store_relaxed(&record->kind, what & 0xffU);
    fence_full();  // SYNC failure-record: before the trap
  } else {
    const std::uint64_t start = now_ns();
    while (now_ns() - start < kRecordNs) {
    }
  }
  __trap();
}

// Does not return: said to the compiler, so that callers keep nothing across it. Not where
// functions are linked later: there it takes more than the 64 registers that a kernel of 1024
// threads has (80 and 74 in tests/nvshmem/programs/full_blocks.cu).
inline __device__ void fail(const Failure& failure) {
  end_kernel(packed(failure), failure.pe, failure.address, failure.expected);
#ifndef __CUDACC_RDC__
  __builtin_unreachable();
#endif
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_FAILURE_CUH
