// counted FILE: PEs put, get and signal to each other, then print what weft_counters and
// weft_peer_counters say, as JSON lines, again and again until FILE is there.
#include <weft/weft.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/multi/programs/expect.h"

namespace {

constexpr std::size_t kBytes = 100'000;
constexpr int kRounds = 300;

void exchange(std::byte* heap, std::uint64_t* signal) {
  const std::vector<std::byte> source(kBytes, std::byte{7});
  std::vector<std::byte> dest(kBytes);
  for (int peer = 0; peer < weft_pe_count(); ++peer) {
    if (peer == weft_pe()) {
      continue;
    }
    for (int i = 0; i < kRounds; ++i) {
      WEFT_EXPECT_OK(weft_put(heap, source.data(), kBytes, peer));
      WEFT_EXPECT_OK(weft_get(dest.data(), heap, kBytes, peer));
      const weft_signal arrived{.word = signal, .value = 1, .operation = WEFT_SIGNAL_ADD};
      WEFT_EXPECT_OK(weft_put_signal(heap, source.data(), 64, arrived, peer));
    }
  }
  WEFT_EXPECT_OK(weft_quiet());
}

void print_counters() {
  std::array<weft_rail_counters, 32> rails{};
  const int rail_count = weft_counters(rails.data(), rails.size());
  std::string line = "{\"pe\": " + std::to_string(weft_pe()) + ", \"rails\": [";
  for (int i = 0; i < rail_count; ++i) {
    const weft_rail_counters& rail = rails[i];
    line += i == 0 ? "[" : ", [";
    for (const std::uint64_t number :
         {rail.tx_bytes, rail.rx_bytes, rail.tx_operations, rail.rx_operations, rail.tx_signals,
          rail.rx_signals, rail.outstanding_bytes, rail.retries, rail.errors}) {
      line += std::to_string(number) + ", ";
    }
    line += std::to_string(rail.up) + ", " + std::to_string(rail.warm) + "]";
  }
  line += "], \"peers\": [";
  for (int peer = 0; peer < weft_pe_count(); ++peer) {
    std::array<weft_peer_rail_counters, 32> theirs{};
    const int count = weft_peer_counters(peer, theirs.data(), theirs.size());
    line += peer == 0 ? "[" : ", [";
    for (int i = 0; i < count; ++i) {
      line += (i == 0 ? "[" : ", [") + std::to_string(theirs[i].put_bytes) + ", " +
              std::to_string(theirs[i].get_bytes) + "]";
    }
    line += "]";
  }
  std::puts((line + "]}").c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  WEFT_EXPECT_OK(weft_init());
  WEFT_EXPECT(argc == 2);
  auto* heap = static_cast<std::byte*>(weft_malloc(kBytes));
  auto* signal = static_cast<std::uint64_t*>(weft_calloc(1, 8));
  exchange(heap, signal);
  WEFT_EXPECT_OK(weft_barrier_all());
  while (!std::filesystem::exists(argv[1])) {
    print_counters();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  WEFT_EXPECT_OK(weft_finalize());
}
