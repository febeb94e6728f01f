// Plain loops, which the compiler vectorizes (this file is built with -O3). Integers wrap around,
// so they are added and multiplied as unsigned types.
#include "src/collectives/reduce.hpp"

#include <complex>
#include <type_traits>

namespace weft::collectives {
namespace {

// The type in which sums and products of T are computed.
template <typename T>
struct Arithmetic {
  using Type = T;
};

// Not narrower than int: smaller unsigned types are promoted to int, whose products can overflow.
template <typename T>
  requires std::is_integral_v<T>
struct Arithmetic<T> {
  using Type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};

template <Reduction kReduction, typename T>
T apply(T a, T b) {
  using Number = typename Arithmetic<T>::Type;
  if constexpr (kReduction == Reduction::And) {
    return static_cast<T>(a & b);
  } else if constexpr (kReduction == Reduction::Or) {
    return static_cast<T>(a | b);
  } else if constexpr (kReduction == Reduction::Xor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (kReduction == Reduction::Min) {
    return b < a ? b : a;
  } else if constexpr (kReduction == Reduction::Max) {
    return a < b ? b : a;
  } else if constexpr (kReduction == Reduction::Sum) {
    return static_cast<T>(static_cast<Number>(a) + static_cast<Number>(b));
  } else {
    return static_cast<T>(static_cast<Number>(a) * static_cast<Number>(b));
  }
}

template <Reduction kReduction, typename T>
void combine(void* result, const void* a, const void* b, std::size_t count) {
  auto* to = static_cast<T*>(result);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = apply<kReduction>(left[i], right[i]);
  }
}

template <typename T>
Combine combine_of(Reduction reduction) {
  constexpr bool kIsInteger = std::is_integral_v<T>;
  constexpr bool kIsOrdered = std::is_arithmetic_v<T>;
  switch (reduction) {
    case Reduction::And:
      if constexpr (kIsInteger) {
        return &combine<Reduction::And, T>;
      }
      return nullptr;
    case Reduction::Or:
      if constexpr (kIsInteger) {
        return &combine<Reduction::Or, T>;
      }
      return nullptr;
    case Reduction::Xor:
      if constexpr (kIsInteger) {
        return &combine<Reduction::Xor, T>;
      }
      return nullptr;
    case Reduction::Min:
      if constexpr (kIsOrdered) {
        return &combine<Reduction::Min, T>;
      }
      return nullptr;
    case Reduction::Max:
      if constexpr (kIsOrdered) {
        return &combine<Reduction::Max, T>;
      }
      return nullptr;
    case Reduction::Sum:
      return &combine<Reduction::Sum, T>;
    case Reduction::Prod:
      return &combine<Reduction::Prod, T>;
  }
  return nullptr;
}

// Calls `visit` with a null pointer to the type's C++ type; returns `otherwise` if the number is
// not a type.
template <typename Result, typename Visit>
Result visit_type(ElementType type, Result otherwise, Visit&& visit) {
  switch (type) {
    case ElementType::Int8:
      return visit(static_cast<std::int8_t*>(nullptr));
    case ElementType::Int16:
      return visit(static_cast<std::int16_t*>(nullptr));
    case ElementType::Int32:
      return visit(static_cast<std::int32_t*>(nullptr));
    case ElementType::Int64:
      return visit(static_cast<std::int64_t*>(nullptr));
    case ElementType::Uint8:
      return visit(static_cast<std::uint8_t*>(nullptr));
    case ElementType::Uint16:
      return visit(static_cast<std::uint16_t*>(nullptr));
    case ElementType::Uint32:
      return visit(static_cast<std::uint32_t*>(nullptr));
    case ElementType::Uint64:
      return visit(static_cast<std::uint64_t*>(nullptr));
    case ElementType::Float:
      return visit(static_cast<float*>(nullptr));
    case ElementType::Double:
      return visit(static_cast<double*>(nullptr));
    case ElementType::LongDouble:
      return visit(static_cast<long double*>(nullptr));
    case ElementType::ComplexFloat:
      return visit(static_cast<std::complex<float>*>(nullptr));
    case ElementType::ComplexDouble:
      return visit(static_cast<std::complex<double>*>(nullptr));
  }
  return otherwise;
}

}  // namespace

std::size_t element_bytes(ElementType type) {
  return visit_type(type, std::size_t{0}, []<typename T>(T* /*type*/) { return sizeof(T); });
}

Combine combine_for(ElementType type, Reduction reduction) {
  return visit_type(type, Combine{nullptr},
                    [&]<typename T>(T* /*type*/) { return combine_of<T>(reduction); });
}

}  // namespace weft::collectives
