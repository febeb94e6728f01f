// Copies between memories that this GPU maps, by all threads of a scope: the widest unit that both
// addresses allow, with several loads on their way before the first store.
//
// Completion: when the call returns, this thread's part is stored (not yet visible to others) and its part
// of the source has been read.
#ifndef WEFT_DEVICE_COPY_CUH
#define WEFT_DEVICE_COPY_CUH

#include <weft/device/access.cuh>
#include <weft/device/scope.cuh>

#include <cstddef>
#include <cstdint>

namespace weft::device {

// Whose memory the source is.
enum class Source : bool { Mine, Peers };

namespace detail {

template <Source kSource>
__device__ Vector16 load_unit(const Vector16* from) {
  return kSource == Source::Mine ? load_data(from) : load_shared(from);
}

// volatile, as relaxed accesses: past the L1 cache.
template <Source kSource, typename Unit>
__device__ Unit load_unit(const Unit* from) {
  return kSource == Source::Mine ? *from : *const_cast<const volatile Unit*>(from);
}

template <typename Unit>
__device__ void store_unit(Unit* to, const Unit& value) {
  *const_cast<volatile Unit*>(to) = value;
}

inline __device__ void store_unit(Vector16* to, const Vector16& value) {
  store_data(to, value);
}

// 8 loads of 16 bytes by each of 1024 threads fill NVLink from one SM as far as one SM can; measured in
// docs/decisions/0009.
template <typename Scope, Source kSource, typename Unit>
__device__ void copy_units(Unit* dest, const Unit* source, std::size_t count) {
  constexpr std::uint32_t kUnroll = 8;
  const std::uint32_t step = Scope::size();
  std::size_t i = Scope::rank();
  for (; i + (kUnroll - 1) * std::size_t{step} < count; i += kUnroll * std::size_t{step}) {
    Unit values[kUnroll];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      values[u] = load_unit<kSource>(source + i + u * std::size_t{step});
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      store_unit(dest + i + u * std::size_t{step}, values[u]);
    }
  }
  for (; i < count; i += step) {
    store_unit(dest + i, load_unit<kSource>(source + i));
  }
}

// Units of sizeof(Unit), and the bytes that are left one by one.
template <typename Scope, Source kSource, typename Unit>
__device__ void copy_by(std::byte* dest, const std::byte* source, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(Unit);
  copy_units<Scope, kSource>(reinterpret_cast<Unit*>(dest), reinterpret_cast<const Unit*>(source),
                             count);
  if constexpr (sizeof(Unit) > 1) {
    const std::size_t done = count * sizeof(Unit);
    for (std::size_t i = done + Scope::rank(); i < bytes; i += Scope::size()) {
      reinterpret_cast<volatile std::uint8_t*>(dest)[i] =
          reinterpret_cast<const volatile std::uint8_t*>(source)[i];
    }
  }
}

}  // namespace detail

template <typename Scope, Source kSource = Source::Mine>
__device__ void copy(void* dest, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(source);
  const auto address = reinterpret_cast<std::uint64_t>(to);
  const std::uint64_t apart = address ^ reinterpret_cast<std::uint64_t>(from);
  if ((apart & 15U) == 0) {
    const std::size_t to_unit = -address & 15U;
    const std::size_t head = to_unit < bytes ? to_unit : bytes;
    detail::copy_by<Scope, kSource, std::uint8_t>(to, from, head);
    detail::copy_by<Scope, kSource, Vector16>(to + head, from + head, bytes - head);
  } else if ((apart & 7U) == 0 && (address & 7U) == 0) {
    detail::copy_by<Scope, kSource, std::uint64_t>(to, from, bytes);
  } else if ((apart & 3U) == 0 && (address & 3U) == 0) {
    detail::copy_by<Scope, kSource, std::uint32_t>(to, from, bytes);
  } else {
    detail::copy_by<Scope, kSource, std::uint8_t>(to, from, bytes);
  }
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_COPY_CUH
