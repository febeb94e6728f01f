// The types of elements as values: what a typed name of NVSHMEM passes on to code without types.
// Integers that differ in their names alone are one type.
//
// Constant; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <weft_nvshmem/types.h>

namespace weft::nvshmem {

enum class Element : std::uint8_t {
  Int8,
  Int16,
  Int32,
  Int64,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Float,
  Double,
  Half,
  Bfloat16,
};

template <typename T>
constexpr Element element_of() {
  if constexpr (std::is_same_v<T, half>) {
    return Element::Half;
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return Element::Bfloat16;
  } else if constexpr (std::is_same_v<T, float>) {
    return Element::Float;
  } else if constexpr (std::is_same_v<T, double>) {
    return Element::Double;
  } else {
    static_assert(std::is_integral_v<T> && sizeof(T) <= 8, "an integer");
    constexpr Element kSigned = sizeof(T) == 1   ? Element::Int8
                                : sizeof(T) == 2 ? Element::Int16
                                : sizeof(T) == 4 ? Element::Int32
                                                 : Element::Int64;
    constexpr Element kUnsigned = sizeof(T) == 1   ? Element::Uint8
                                  : sizeof(T) == 2 ? Element::Uint16
                                  : sizeof(T) == 4 ? Element::Uint32
                                                   : Element::Uint64;
    return std::is_signed_v<T> ? kSigned : kUnsigned;
  }
}

constexpr std::size_t size_of(Element element) {
  switch (element) {
    case Element::Int8:
    case Element::Uint8:
      return 1;
    case Element::Int16:
    case Element::Uint16:
    case Element::Half:
    case Element::Bfloat16:
      return 2;
    case Element::Int32:
    case Element::Uint32:
    case Element::Float:
      return 4;
    case Element::Int64:
    case Element::Uint64:
    case Element::Double:
      return 8;
  }
  return 0;
}

}  // namespace weft::nvshmem
