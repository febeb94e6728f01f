#include "tools/perf/reduction_values.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <concepts>
#include <type_traits>

namespace weft::perf {
namespace {

template <typename T>
struct ElementOf {
  using Type = T;
};

// Calls visit(ElementOf<T>) for the C++ type that `type` stands for.
template <typename Visit>
auto visit_type(weft_type type, const Visit& visit) {
  switch (type) {
    case WEFT_INT8:
      return visit(ElementOf<std::int8_t>{});
    case WEFT_INT16:
      return visit(ElementOf<std::int16_t>{});
    case WEFT_INT32:
      return visit(ElementOf<std::int32_t>{});
    case WEFT_INT64:
      return visit(ElementOf<std::int64_t>{});
    case WEFT_UINT8:
      return visit(ElementOf<std::uint8_t>{});
    case WEFT_UINT16:
      return visit(ElementOf<std::uint16_t>{});
    case WEFT_UINT32:
      return visit(ElementOf<std::uint32_t>{});
    case WEFT_UINT64:
      return visit(ElementOf<std::uint64_t>{});
    case WEFT_FLOAT:
      return visit(ElementOf<float>{});
    case WEFT_DOUBLE:
      return visit(ElementOf<double>{});
    case WEFT_LONG_DOUBLE:
      return visit(ElementOf<long double>{});
    case WEFT_COMPLEX_FLOAT:
      return visit(ElementOf<std::complex<float>>{});
    case WEFT_COMPLEX_DOUBLE:
      break;
  }
  return visit(ElementOf<std::complex<double>>{});
}

template <typename T>
constexpr bool kIsComplex = !std::is_arithmetic_v<T>;

// The sign, a power of two and, for complex numbers, i or not, from three bits each.
template <typename T>
T factor_from(std::uint64_t bits) {
  constexpr std::array kPowers{0.5, 1.0, 1.0, 2.0};
  const double real = kPowers[bits & 3U] * ((bits & 4U) != 0 ? -1.0 : 1.0);
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    const auto part = static_cast<Part>(real);
    return (bits & 8U) != 0 ? T(0, part) : T(part, 0);
  } else {
    return static_cast<T>(real);
  }
}

template <typename T>
T small_from(std::uint64_t bits) {
  const auto whole = [](std::uint64_t byte) { return static_cast<float>(byte & 0xFFU) - 128.0F; };
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return T(static_cast<Part>(whole(bits)), static_cast<Part>(whole(bits >> 8U)));
  } else {
    return static_cast<T>(whole(bits));
  }
}

template <typename T>
T value_of(const ReductionCase& what, std::uint32_t pe, std::size_t index) {
  const std::uint64_t bits =
      key_of({.source = pe, .dest = 0, .iteration = what.round}, mix(index + 1));
  if constexpr (std::integral<T>) {
    // Odd factors: a product of even ones is soon 0, whoever is missing.
    return static_cast<T>(what.reduction == WEFT_PROD ? bits | 1U : bits);
  } else {
    return what.reduction == WEFT_PROD ? factor_from<T>(bits) : small_from<T>(bits);
  }
}

template <std::integral T>
T combine_bits(weft_reduction reduction, T left, T right) {
  const std::uint64_t a = static_cast<std::make_unsigned_t<T>>(left);
  const std::uint64_t b = static_cast<std::make_unsigned_t<T>>(right);
  switch (reduction) {
    case WEFT_AND:
      return static_cast<T>(a & b);
    case WEFT_OR:
      return static_cast<T>(a | b);
    case WEFT_XOR:
      return static_cast<T>(a ^ b);
    case WEFT_SUM:
      return static_cast<T>(a + b);
    case WEFT_PROD:
      return static_cast<T>(a * b);
    case WEFT_MIN:
      return std::min(left, right);
    case WEFT_MAX:
      break;
  }
  return std::max(left, right);
}

template <typename T>
T combine(weft_reduction reduction, T left, T right) {
  if constexpr (std::integral<T>) {
    return combine_bits(reduction, left, right);
  } else {
    if constexpr (!kIsComplex<T>) {
      if (reduction == WEFT_MIN || reduction == WEFT_MAX) {
        return reduction == WEFT_MIN ? std::min(left, right) : std::max(left, right);
      }
    }
    return reduction == WEFT_PROD ? left * right : left + right;
  }
}

template <typename T>
T wanted_at(const ReductionCase& what, std::uint32_t pe_count, std::size_t index) {
  T all = value_of<T>(what, 0, index);
  for (std::uint32_t pe = 1; pe < pe_count; ++pe) {
    all = combine(what.reduction, all, value_of<T>(what, pe, index));
  }
  return all;
}

}  // namespace

std::size_t size_of(weft_type type) {
  return visit_type(type, [](auto element) { return sizeof(typename decltype(element)::Type); });
}

bool is_allowed(weft_reduction reduction, weft_type type) {
  return visit_type(type, [&](auto element) {
    using T = typename decltype(element)::Type;
    const bool is_bitwise = reduction <= WEFT_XOR;
    const bool orders = reduction == WEFT_MIN || reduction == WEFT_MAX;
    return (!is_bitwise || std::integral<T>) && (!orders || !kIsComplex<T>);
  });
}

void fill_contribution(std::span<std::byte> bytes, const ReductionCase& what, std::uint32_t pe) {
  visit_type(what.type, [&](auto element) {
    using T = typename decltype(element)::Type;
    const std::span elements(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
    for (std::size_t index = 0; index < elements.size(); ++index) {
      elements[index] = value_of<T>(what, pe, index);
    }
  });
}

PayloadCheck check_reduction(std::span<const std::byte> bytes,
                             const ReductionCase& what,
                             std::uint32_t pe_count) {
  return visit_type(what.type, [&](auto element) {
    using T = typename decltype(element)::Type;
    const std::span elements(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
    PayloadCheck check;
    for (std::size_t index = 0; index < elements.size(); ++index) {
      if (elements[index] != wanted_at<T>(what, pe_count, index)) {
        check.first_wrong_offset = check.is_right() ? index * sizeof(T) : check.first_wrong_offset;
        check.wrong_bytes += sizeof(T);
      }
    }
    return check;
  });
}

}  // namespace weft::perf
