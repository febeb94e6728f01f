// The way to PEs whose memory is not mapped: one command into a ring that the CPU drains onto the rails.
#ifndef WEFT_DEVICE_REMOTE_CUH
#define WEFT_DEVICE_REMOTE_CUH

#include <weft/device/failure.cuh>

#include <cstddef>
#include <cstdint>

namespace weft::device {

// What an atomic does to its word.
enum class AtomicCode : std::uint8_t { Set, Add, And, Or, Xor, CompareSwap, Fetch };

// What a signal does to its word.
enum class SignalOp : std::uint32_t { Set = 1, Add = 2 };

namespace remote {

// Whether the call returns only when its local side may be used again (put) or is filled (get).
enum class Wait : bool { No, Yes };

struct SignalUpdate {
  std::uint64_t* word;
  std::uint64_t value;
  SignalOp op;
};

struct AtomicUpdate {
  AtomicCode code;
  std::uint32_t element_bytes;
  std::uint64_t operand;
  std::uint64_t compare;
};

static __device__ __noinline__ void no_way(OperationName operation, int pe) {
  detail::fail({FailureKind::Misuse, operation, pe});
}

template <typename Scope>
__device__ void put(void*, const void*, std::size_t, int pe, Wait) {
  no_way(OperationName::Put, pe);
}

template <typename Scope>
__device__ void get(void*, const void*, std::size_t, int pe, Wait) {
  no_way(OperationName::Get, pe);
}

template <typename Scope>
__device__ void put_signal(void*, const void*, std::size_t, const SignalUpdate&, int pe, Wait) {
  no_way(OperationName::PutSignal, pe);
}

inline __device__ void put_value(void*, const void*, std::size_t, int pe) {
  no_way(OperationName::P, pe);
}

inline __device__ void get_value(void*, const void*, std::size_t, int pe) {
  no_way(OperationName::G, pe);
}

inline __device__ void signal(std::uint64_t*, std::uint64_t, SignalOp, int pe) {
  no_way(OperationName::Signal, pe);
}

inline __device__ std::uint64_t atomic(void*, const AtomicUpdate&, int pe, bool) {
  no_way(OperationName::Atomic, pe);
  return 0;
}

inline __device__ void quiet() {}

// Applies what has come from other nodes. Every waiting loop calls it.
inline __device__ void serve() {}

}  // namespace remote
}  // namespace weft::device

#endif  // WEFT_DEVICE_REMOTE_CUH
