// How long node-local calls take: PE 0 works on PE 1's heap, whose owner waits in a barrier. Start
// it with `weft-run -n 2 --bind core -- node_local`. One JSON line per measurement: the median of
// 7.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/multi/programs/expect.h"

namespace {

template <typename Body>
double median_ns(std::size_t iterations, Body&& body) {
  std::array<double, 7> runs{};
  for (double& run : runs) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < iterations; ++i) {
      body(i);
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    run = spent.count() / static_cast<double>(iterations);
  }
  std::ranges::nth_element(runs, runs.begin() + 3);
  return runs[3];
}

void report(const char* name, std::size_t bytes, double ns) {
  std::printf("{\"name\": \"%s\", \"bytes\": %zu, \"ns\": %.2f, \"gb_per_s\": %.2f}\n", name, bytes,
              ns, static_cast<double>(bytes) / ns);
}

void measure_words(std::int64_t* heap) {
  constexpr std::size_t kMany = 5'000'000;
  std::int64_t value = 1;
  report("put_quiet", 8, median_ns(kMany, [&](std::size_t i) {
           value = static_cast<std::int64_t>(i);
           weft_put(heap, &value, 8, 1);
           weft_quiet();
         }));
  report("p_quiet", 8, median_ns(kMany, [&](std::size_t i) {
           weft_int64_p(heap, static_cast<std::int64_t>(i), 1);
           weft_quiet();
         }));
  report("put", 8, median_ns(kMany, [&](std::size_t) { weft_put(heap, &value, 8, 1); }));
  report("get", 8, median_ns(kMany, [&](std::size_t) { weft_get(&value, heap, 8, 1); }));
  report("g", 8, median_ns(kMany, [&](std::size_t) { value += weft_int64_g(heap, 1); }));
  report("fetch_add", 8,
         median_ns(kMany, [&](std::size_t) { value += weft_int64_atomic_fetch_add(heap, 1, 1); }));
}

void measure_copies(unsigned char* heap, std::size_t bytes) {
  std::vector<unsigned char> source(bytes, 1);
  void* peer = weft_ptr(heap, 1);
  const std::size_t iterations = std::max<std::size_t>(4, (std::size_t{2} << 30U) / 7 / bytes);
  weft_put(heap, source.data(), bytes, 1);  // touches both
  report("put", bytes, median_ns(iterations, [&](std::size_t i) {
           source[i % bytes] = static_cast<unsigned char>(i);
           weft_put(heap, source.data(), bytes, 1);
         }));
  report("memcpy", bytes, median_ns(iterations, [&](std::size_t i) {
           source[i % bytes] = static_cast<unsigned char>(i);
           std::memcpy(peer, source.data(), bytes);
         }));
}

}  // namespace

int main() {
  constexpr std::size_t kBytesMax = std::size_t{64} << 20U;
  WEFT_EXPECT_OK(weft_init());
  auto* heap = static_cast<unsigned char*>(weft_malloc(kBytesMax));
  WEFT_EXPECT(heap != nullptr && weft_pe_count() == 2);
  if (weft_pe() == 0) {
    measure_words(reinterpret_cast<std::int64_t*>(heap));
    for (const std::size_t bytes :
         {4096UL, 65536UL, 262144UL, 1048576UL, 4194304UL, 16777216UL, 67108864UL}) {
      measure_copies(heap, bytes);
    }
  }
  WEFT_EXPECT_OK(weft_barrier_all());
  const double barrier_ns = median_ns(2000, [](std::size_t) { weft_barrier_all(); });
  if (weft_pe() == 0) {
    report("barrier_all", 0, barrier_ns);
  }
  return weft_finalize();
}
