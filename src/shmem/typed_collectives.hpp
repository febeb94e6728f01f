// The templates behind the typed reductions of shmem.h.
//
// Invariant: each C type has one weft_type, by its size and sign, so that long is int64 here.
//
// Threads: as the collectives themselves.
#pragma once

#include <complex>
#include <type_traits>

#include "src/api/teams.hpp"
#include "src/shmem/active_set.hpp"

namespace weft::api::typed {

// The weft_type of an element.
template <typename T>
[[nodiscard]] constexpr weft_type type_of() {
  if constexpr (std::is_same_v<T, float>) {
    return WEFT_FLOAT;
  } else if constexpr (std::is_same_v<T, double>) {
    return WEFT_DOUBLE;
  } else if constexpr (std::is_same_v<T, long double>) {
    return WEFT_LONG_DOUBLE;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return WEFT_COMPLEX_FLOAT;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return WEFT_COMPLEX_DOUBLE;
  } else {
    static_assert(std::is_integral_v<T>);
    constexpr int kFirst = std::is_signed_v<T> ? WEFT_INT8 : WEFT_UINT8;
    return static_cast<weft_type>(kFirst + __builtin_ctz(sizeof(T)));
  }
}

template <weft_reduction kReduction, typename T>
int reduce(weft_team_t team, T* dest, const T* source, std::size_t count) {
  return weft_team_reduce(team, dest, source, {type_of<T>(), count}, kReduction);
}

template <typename T>
int inscan(weft_team_t team, T* dest, const T* source, std::size_t count) {
  return weft_team_inclusive_scan(team, dest, source, {type_of<T>(), count}, WEFT_SUM);
}

template <typename T>
int exscan(weft_team_t team, T* dest, const T* source, std::size_t count) {
  return weft_team_exclusive_scan(team, dest, source, {type_of<T>(), count}, WEFT_SUM);
}

// For active sets.
template <weft_reduction kReduction, typename T>
int set_reduce(const Caller& caller, const ActiveSet& set, T* dest, const T* source, int count) {
  if (count < 0) {
    return end_job_if_failed(caller, report(Status::InvalidArgument,
                                            fmt::format("{}: {} elements", caller.name, count)));
  }
  return end_job_if_failed(
      caller, active_reduce(caller.name, set, dest, source,
                            {type_of<T>(), static_cast<std::size_t>(count)}, kReduction));
}

}  // namespace weft::api::typed
