// put, get, p and g, from any thread of a kernel, by a thread, a warp or a block together.
//
// `dest` of a put and `source` of a get are symmetric addresses (weft_device_malloc); the other
// side is any memory that this GPU can access. `count` is in elements. Calls of one thread are not
// ordered with respect to each other: see order.cuh.
//
// Completion: put returns when `source` may be changed. put_nbi returns at once; `source` must not
// change before quiet. get returns when `dest` is filled; `dest` of get_nbi is filled after quiet.
// None of them implies that the target has the data: use quiet or a signal (signal.cuh).
#ifndef WEFT_DEVICE_RMA_CUH
#define WEFT_DEVICE_RMA_CUH

#include <weft/device/cold_call.cuh>
#include <weft/device/copy.cuh>
#include <weft/device/peers.cuh>
#include <weft/device/remote.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

template <typename Scope = Thread, typename T>
__device__ void put_nbi(T* dest, const T* source, std::size_t count, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count * sizeof(T);
  detail::check(OperationName::Put, dest, bytes, pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    copy<Scope>(detail::moved(dest, delta), source, bytes);
  } else {
    detail::cold_call<&remote::put<Scope>>(dest, source, bytes, pe, remote::Wait::No);
  }
}

template <typename Scope = Thread, typename T>
__device__ void put(T* dest, const T* source, std::size_t count, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count * sizeof(T);
  detail::check(OperationName::Put, dest, bytes, pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    copy<Scope>(detail::moved(dest, delta), source, bytes);
  } else {
    detail::cold_call<&remote::put<Scope>>(dest, source, bytes, pe, remote::Wait::Yes);
  }
  Scope::sync();
}

template <typename Scope = Thread, typename T>
__device__ void get_nbi(T* dest, const T* source, std::size_t count, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count * sizeof(T);
  detail::check(OperationName::Get, source, bytes, pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    copy<Scope, Source::Peers>(dest, detail::moved(source, delta), bytes);
  } else {
    detail::cold_call<&remote::get<Scope>>(dest, source, bytes, pe, remote::Wait::No);
  }
}

template <typename Scope = Thread, typename T>
__device__ void get(T* dest, const T* source, std::size_t count, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count * sizeof(T);
  detail::check(OperationName::Get, source, bytes, pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    copy<Scope, Source::Peers>(dest, detail::moved(source, delta), bytes);
  } else {
    detail::cold_call<&remote::get<Scope>>(dest, source, bytes, pe, remote::Wait::Yes);
  }
  Scope::sync();
}

namespace detail {

// An element in memory that others access, in units of its alignment: one of a number, several of a
// structure.
template <std::size_t kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 8,
    std::uint64_t,
    std::conditional_t<kBytes == 4,
                       std::uint32_t,
                       std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>>;

template <typename T>
struct Units {
  using Unit = UnsignedOf<alignof(T)>;
  static constexpr std::size_t kCount = sizeof(T) / sizeof(Unit);
  Unit units[kCount];  // NOLINT(modernize-avoid-c-arrays): device code has no std::array
};

template <typename T>
__device__ void store_element(T* to, const T& value) {
  Units<T> from;
  memcpy(&from, &value, sizeof(T));
  volatile auto* units = reinterpret_cast<volatile typename Units<T>::Unit*>(to);
  for (std::size_t i = 0; i < Units<T>::kCount; ++i) {
    units[i] = from.units[i];
  }
}

template <typename T>
__device__ T load_element(const T* from) {
  Units<T> found;
  const volatile auto* units = reinterpret_cast<const volatile typename Units<T>::Unit*>(from);
  for (std::size_t i = 0; i < Units<T>::kCount; ++i) {
    found.units[i] = units[i];
  }
  T value;
  memcpy(&value, &found, sizeof(T));
  return value;
}

}  // namespace detail

// One element of at most 8 bytes, by value: a number, or a structure. A structure with an alignment
// below its size is written in several parts, which a reader may see one by one.
template <typename T>
__device__ void p(T* dest, Value<T> value, int pe) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "one small element");
  detail::check(OperationName::P, dest, sizeof(T), pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    detail::store_element<T>(detail::moved(dest, delta), value);
  } else {
    std::uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    detail::cold_call<&remote::put_value>(dest, bits, std::uint32_t{sizeof(T)}, pe);
  }
}

template <typename T>
__device__ T g(const T* source, int pe) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "one small element");
  detail::check(OperationName::G, source, sizeof(T), pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    return detail::load_element<T>(detail::moved(source, delta));
  }
  const std::uint64_t bits =
      detail::cold_call<&remote::get_value>(source, std::uint32_t{sizeof(T)}, pe);
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_RMA_CUH
