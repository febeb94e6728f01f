// How a kernel aborts on an error: it writes one record for the host and traps. The CUDA context is then lost,
// as after any fault in a kernel; weft_device_check and the library's own log report the cause.
//
// Threads: any; the first one to fail writes the record.
#ifndef WEFT_DEVICE_FAILURE_CUH
#define WEFT_DEVICE_FAILURE_CUH

#include <weft/device/access.cuh>
#include <weft/device/module.cuh>
#include <weft/device/scope.cuh>

#include <cstdio>

namespace weft::device::detail {

// The operation that failed.
struct Failure {
  FailureKind kind = FailureKind::None;
  OperationName operation = OperationName::None;
  std::int32_t pe = -1;
  const void* address = nullptr;
  std::uint64_t expected = 0;
};

// How long later failing threads give the first one to write its record.
inline constexpr std::uint64_t kRecordNs = 1'000'000;

static __device__ __noinline__ void end_kernel(std::uint32_t what,
                                               std::int32_t pe,
                                               const void* address,
                                               std::uint64_t expected) {
  FailureRecord* record = state().failure;
  if (record == nullptr) {
    printf("weft: a kernel made a call before weft_device_init\n");
    __trap();
  }
  if (atomicCAS(state().failure_claim, 0U, 1U) == 0) {
    record->operation = what >> 16U;
    record->pe = pe;
    record->block = Grid::block();
    record->address = reinterpret_cast<std::uint64_t>(address);
    record->expected = expected;
    // SYNC failure-record (pairs with src/runtime/device/watch.cpp): `kind` is written last.
    fence_release();
    store_relaxed(&record->kind, what & 0xffffU);
    fence_full();  // SYNC failure-record: before the trap
  } else {
    const std::uint64_t start = now_ns();
    while (now_ns() - start < kRecordNs) {
    }
  }
  __trap();
}

// Passes its arguments in registers: a structure in memory would cost callers a stack even if they never fail.
inline __device__ void fail(const Failure& failure) {
  end_kernel(static_cast<std::uint32_t>(failure.kind) |
                 static_cast<std::uint32_t>(failure.operation) << 16U,
             failure.pe, failure.address, failure.expected);
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_FAILURE_CUH
