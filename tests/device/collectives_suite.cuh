// What the tests of collectives share: the teams, the scopes with their launches, and small
// integers as data, so that sums of floats are exact in any order.
#pragma once

#include <weft/device/collectives.cuh>
#include <weft/device/launch.cuh>

#include "tests/device/device_tools.cuh"
#include "tests/device/test_team.cuh"

namespace suite {

// Counts of elements: around units, parcels, and the sizes at which the way changes.
inline const std::vector<std::size_t> kCounts = {0, 1, 2, 3, 5, 31, 32, 33, 100, 1000, 4096, 65537};

inline constexpr unsigned kGridBlocks = 16;

// Starts `kernel` for one scope of a kind, or for a grid of several blocks.
template <typename Scope, typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Arguments&... arguments) {
  unsigned blocks = 1;
  unsigned threads = 256;
  if constexpr (std::is_same_v<Scope, wd::Thread>) {
    threads = 1;
  } else if constexpr (std::is_same_v<Scope, wd::Warp>) {
    threads = 32;
  } else if constexpr (std::is_same_v<Scope, wd::Grid>) {
    blocks = kGridBlocks;
  }
  require_cuda(wd::launch_collective(kernel, dim3(blocks), dim3(threads), 0, nullptr,
                                     Parameters(arguments)...),
               "launch_collective");
}

// One thread copies 64 Ki elements slowly enough to notice.
template <typename Scope>
std::size_t count_max() {
  return std::is_same_v<Scope, wd::Thread> ? 4096 : 65537;
}

template <typename Scope>
const char* scope_name() {
  if constexpr (std::is_same_v<Scope, wd::Thread>) {
    return "thread";
  } else if constexpr (std::is_same_v<Scope, wd::Warp>) {
    return "warp";
  } else if constexpr (std::is_same_v<Scope, wd::Block>) {
    return "block";
  } else {
    return "grid";
  }
}

// What member `pe` (of the job) has at a place: 1 to 3, so that products fit too.
template <typename T>
T element_of(std::uint64_t seed, int pe, std::size_t place) {
  return static_cast<T>(1 + random_at(seed, pe, place) % 3);
}

template <typename T>
std::vector<T> elements_of(std::uint64_t seed, int pe, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = element_of<T>(seed, pe, i);
  }
  return values;
}

// The first places of `dest` are `expected`, and what is behind them is as it was.
template <typename T>
void compare(const Array<T>& dest, const std::vector<T>& expected, const std::string& what) {
  const std::vector<T> got = dest.read();
  std::vector<T> poison(1);
  std::memset(poison.data(), kPoison, sizeof(T));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const T& wanted = i < expected.size() ? expected[i] : poison[0];
    if (std::memcmp(&got[i], &wanted, sizeof(T)) != 0) {
      fail("%s: element %zu of %zu is %g, not %g", what.c_str(), i, expected.size(),
           static_cast<double>(got[i]), static_cast<double>(wanted));
      return;
    }
  }
}

}  // namespace suite
