// The loop of a many-to-many read, the same for every library under it: in all_get_all each process
// reads from every other, in exchange_get pairs read from each other. Aggregate: 64 rounds of reads
// before the wait for all; else each read is waited for. As in IMB-RMA's benchmarks of these names.
//
// A Library has: me(), size(), post(peer, bytes), wait(), barrier(), largest(double).
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace get_all {

inline constexpr std::size_t kBytesMax = 64 << 10;
inline constexpr int kRounds = 64;

struct Shape {
  const char* name;
  bool pairs;
  bool aggregate;
};

inline constexpr Shape kShapes[] = {{"all_get_all", false, false},
                                    {"all_get_all_aggregate", false, true},
                                    {"exchange_get", true, false},
                                    {"exchange_get_aggregate", true, true}};

template <typename Library>
void rounds(Library& library, const Shape& shape, std::size_t bytes, int count) {
  for (int round = 0; round < count; ++round) {
    for (int step = 1; step < library.size(); ++step) {
      const int peer = shape.pairs ? library.me() ^ 1 : (library.me() + step) % library.size();
      library.post(peer, bytes);
      if (!shape.aggregate) {
        library.wait();
      }
      if (shape.pairs) {
        break;
      }
    }
    if (shape.aggregate && (round + 1) % kRounds == 0) {
      library.wait();
    }
  }
  library.wait();
}

// Prints one line for each shape: reads per second of all processes together.
template <typename Library>
int run(Library& library, int argc, char** argv) {
  if (argc < 2 || library.size() % 2 != 0) {
    std::fprintf(stderr, "usage: an even number of processes, BYTES...\n");
    return 2;
  }
  for (int argument = 1; argument < argc; ++argument) {
    const std::size_t bytes = std::strtoul(argv[argument], nullptr, 10);
    if (bytes < 1 || bytes > kBytesMax) {
      std::fprintf(stderr, "%s: sizes are 1 to %zu bytes\n", argv[argument], kBytesMax);
      return 2;
    }
    for (const Shape& shape : kShapes) {
      const int per_round = shape.pairs ? 1 : library.size() - 1;
      const int count = kRounds * (1 + 20'000 / (kRounds * per_round));
      rounds(library, shape, bytes, kRounds);
      library.barrier();
      const auto start = std::chrono::steady_clock::now();
      rounds(library, shape, bytes, count);
      const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - start;
      const double seconds = library.largest(mine.count());
      if (library.me() == 0) {
        const double reads = static_cast<double>(count) * per_round * library.size();
        std::printf("{\"what\": \"%s\", \"size\": %zu, \"value\": %.0f, \"unit\": \"reads/s\"}\n",
                    shape.name, bytes, reads / seconds);
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace get_all
