// PE numbers, and where a symmetric address is mapped at a peer.
//
// A symmetric address is an address in memory of weft_device_malloc, as this PE sees it; it names
// the same object on every PE. Errors: an address that is not symmetric, or a PE that does not
// exist, aborts the kernel (failure.cuh). -DWEFT_DEVICE_CHECKS=0 removes these checks.
#ifndef WEFT_DEVICE_PEERS_CUH
#define WEFT_DEVICE_PEERS_CUH

#include <weft/device/failure.cuh>
#include <weft/device/module.cuh>
#include <weft/device/standard.hpp>

#ifndef WEFT_DEVICE_CHECKS
#define WEFT_DEVICE_CHECKS 1
#endif
// 1: what a PE does to itself may be in any memory of its GPU, as programs of NVSHMEM do.
#ifndef WEFT_DEVICE_OWN_PE_ANYWHERE
#define WEFT_DEVICE_OWN_PE_ANYWHERE 0
#endif

namespace weft::device {

// This PE, 0 .. pe_count() - 1.
inline __device__ int pe() {
  return static_cast<int>(state().pe);
}

inline __device__ int pe_count() {
  return static_cast<int>(state().pe_count);
}

namespace detail {

// The offset to add to a symmetric address to access it at `pe`; kNotMapped if loads cannot reach
// it.
inline __device__ std::int64_t delta_of(int pe) {
  const HotState& s = state();
  if (s.deltas != nullptr) {
    return s.deltas[pe];
  }
  const std::uint32_t slot = static_cast<std::uint32_t>(pe) - s.first_mapped;
  return slot < s.mapped_count ? s.window_offset + static_cast<std::int64_t>(slot * s.stride)
                               : kNotMapped;
}

inline __device__ std::uint64_t offset_of(const void* address) {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - state().heap);
}

inline __device__ void check(OperationName operation,
                             const void* address,
                             std::size_t bytes,
                             int pe) {
#if WEFT_DEVICE_CHECKS
  const std::uint64_t offset = offset_of(address);
  const std::uint64_t size = state().heap_bytes;
  if (static_cast<std::uint32_t>(pe) >= state().pe_count) {
    fail({FailureKind::NoSuchPe, operation, pe, address, bytes});
  }
  const bool is_in_heap = offset < size && bytes <= size - offset;
  if (!is_in_heap && (WEFT_DEVICE_OWN_PE_ANYWHERE == 0 || pe != weft::device::pe())) {
    fail({FailureKind::NotSymmetric, operation, pe, address, bytes});
  }
#endif
}

template <typename T>
__device__ T* moved(T* address, std::int64_t delta) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uint64_t>(address) +
                              static_cast<std::uint64_t>(delta));
}

}  // namespace detail

// The local address at which `address` of `pe` is mapped, for loads, stores and atomics; null if
// `pe` is reached only by command.
template <typename T>
__device__ T* ptr(T* address, int pe) {
  if (static_cast<std::uint32_t>(pe) >= state().pe_count ||
      detail::offset_of(address) >= state().heap_bytes) {
    return nullptr;
  }
  const std::int64_t delta = detail::delta_of(pe);
  return delta == kNotMapped ? nullptr : detail::moved(address, delta);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_PEERS_CUH
