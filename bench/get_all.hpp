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

// From the first process's start to the last one's end: where processes share cores, the time that
// each one takes by itself says nothing.
template <typename Library>
double seconds_of(Library& library, const Shape& shape, std::size_t bytes, int count) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  library.barrier();
  const double start = now();
  rounds(library, shape, bytes, count);
  const double end = now();
  return library.largest(end) + library.largest(-start);
}

// Prints the reads per second of all processes together, over about 0.2 s.
template <typename Library>
void measure(Library& library, const Shape& shape, std::size_t bytes) {
  constexpr double kSeconds = 0.2;
  const int first = 8 * kRounds;
  rounds(library, shape, bytes, first);
  const double each = seconds_of(library, shape, bytes, first) / first;
  const int count = kRounds * (1 + static_cast<int>(kSeconds / each / kRounds));
  const double seconds = seconds_of(library, shape, bytes, count);
  if (library.me() == 0) {
    const int per_round = shape.pairs ? 1 : library.size() - 1;
    const double reads = static_cast<double>(count) * per_round * library.size();
    std::printf("{\"what\": \"%s\", \"size\": %zu, \"value\": %.0f, \"unit\": \"reads/s\"}\n",
                shape.name, bytes, reads / seconds);
    std::fflush(stdout);
  }
}

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
      measure(library, shape, bytes);
    }
  }
  return 0;
}

}  // namespace get_all
