#include "dtype.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace weft::python {
namespace {

using Code = nanobind::dlpack::dtype_code;
constexpr auto kNoReduction = static_cast<weft_type>(0);

constexpr nanobind::dlpack::dtype dlpack_of(Code code, int bits) {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
}

constexpr std::array kDtypes{
    Dtype{"int8", dlpack_of(Code::Int, 8), "b", WEFT_INT8},
    Dtype{"int16", dlpack_of(Code::Int, 16), "h", WEFT_INT16},
    Dtype{"int32", dlpack_of(Code::Int, 32), "i", WEFT_INT32},
    Dtype{"int64", dlpack_of(Code::Int, 64), "q", WEFT_INT64},
    Dtype{"uint8", dlpack_of(Code::UInt, 8), "B", WEFT_UINT8},
    Dtype{"uint16", dlpack_of(Code::UInt, 16), "H", WEFT_UINT16},
    Dtype{"uint32", dlpack_of(Code::UInt, 32), "I", WEFT_UINT32},
    Dtype{"uint64", dlpack_of(Code::UInt, 64), "Q", WEFT_UINT64},
    Dtype{"float16", dlpack_of(Code::Float, 16), "e", kNoReduction},
    Dtype{"float32", dlpack_of(Code::Float, 32), "f", WEFT_FLOAT},
    Dtype{"float64", dlpack_of(Code::Float, 64), "d", WEFT_DOUBLE},
    Dtype{"complex64", dlpack_of(Code::Complex, 64), "Zf", WEFT_COMPLEX_FLOAT},
    Dtype{"complex128", dlpack_of(Code::Complex, 128), "Zd", WEFT_COMPLEX_DOUBLE},
    Dtype{"bool", dlpack_of(Code::Bool, 8), "?", kNoReduction},
    Dtype{"bfloat16", dlpack_of(Code::Bfloat, 16), nullptr, kNoReduction},
    Dtype{"float8_e4m3fn", dlpack_of(Code::Float8_E4M3FN, 8), nullptr, kNoReduction},
    Dtype{"float8_e5m2", dlpack_of(Code::Float8_E5M2, 8), nullptr, kNoReduction},
    Dtype{"float8_e8m0fnu", dlpack_of(Code::Float8_E8M0FNU, 8), nullptr, kNoReduction},
};

template <typename Predicate>
const Dtype* find_if(Predicate&& predicate) {
  const auto* found = std::ranges::find_if(kDtypes, predicate);
  return found == kDtypes.end() ? nullptr : found;
}

// The buffer protocol's letters for integers mean C types, of which several have one size.
const Dtype* find_integer(char letter, std::size_t bytes) {
  const bool is_signed = std::string_view("bhilqn").find(letter) != std::string_view::npos;
  const bool is_unsigned = std::string_view("BHILQN").find(letter) != std::string_view::npos;
  if (!is_signed && !is_unsigned) {
    return nullptr;
  }
  return find_dtype(dlpack_of(is_signed ? Code::Int : Code::UInt, static_cast<int>(bytes * 8)));
}

}  // namespace

const Dtype* find_dtype(std::string_view name) {
  return find_if([&](const Dtype& dtype) { return dtype.name == name; });
}

const Dtype* find_dtype(nanobind::dlpack::dtype dlpack) {
  return find_if([&](const Dtype& dtype) { return dtype.dlpack == dlpack; });
}

const Dtype* find_dtype(const char* format, std::size_t bytes) {
  if (format == nullptr) {
    return find_dtype("uint8");
  }
  std::string_view letters = format;
  if (!letters.empty() && std::string_view("@=<").find(letters.front()) != std::string_view::npos) {
    letters.remove_prefix(1);
  }
  if (letters.size() == 1) {
    if (letters == "c") {
      return find_dtype("uint8");
    }
    if (const Dtype* integer = find_integer(letters.front(), bytes)) {
      return integer;
    }
  }
  return find_if(
      [&](const Dtype& dtype) { return dtype.format != nullptr && dtype.format == letters; });
}

std::string_view dtype_names() {
  static const std::string names = [] {
    std::string text;
    for (const Dtype& dtype : kDtypes) {
      text += text.empty() ? "" : ", ";
      text += dtype.name;
    }
    return text;
  }();
  return names;
}

}  // namespace weft::python
