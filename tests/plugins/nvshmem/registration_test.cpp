// Memory that comes and goes while a job runs: chunks, buffers of one PE, memory of the user under
// an address of the heap.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "tests/plugins/nvshmem/run_hosts.hpp"
#include "tests/plugins/nvshmem/scenarios.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10U;
constexpr std::uint64_t kSignals = 0;  // by source
constexpr std::uint64_t kSource = 4096;
constexpr std::uint64_t kAreas = 8192;  // 1 KiB for each source

class NvshmemRegistration : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static HostOptions options(int pe_count = 2) {
    HostOptions options{.interface = GetParam(), .pe_count = pe_count};
    options.heap.chunk_bytes = kChunk;
    return options;
  }
};

// The caller's bytes into `offset` at the next PE; the previous PE's are there afterwards.
void check_shift(FakeHost& host, std::uint64_t offset, std::byte* source, std::size_t bytes) {
  const int count = host.pe_count();
  fill(source, bytes, host.pe(), offset);
  host.meet();
  host.operations().put((host.pe() + 1) % count,
                        {.offset = offset, .local = source, .bytes = bytes}, Blocking::Yes);
  host.meet();
}

void check_chunk(FakeHost& host, std::size_t chunk) {
  constexpr std::size_t kBytes = 100'001;
  const std::uint64_t offset = chunk * kChunk + 4096;
  check_shift(host, offset, host.heap().at(chunk * kChunk + 128 * 1024), kBytes);
  const int previous = (host.pe() - 1 + host.pe_count()) % host.pe_count();
  EXPECT_EQ(wrong_bytes(host.heap().at(offset), kBytes, previous, offset), 0U)
      << "in chunk " << chunk;
}

// put_signals of 512 bytes into chunk 0 of the next PE until told to stop; how many.
std::uint64_t send_until(Operations& proxy, FakeHost& host, const std::atomic<bool>& stops) {
  const auto place = static_cast<std::uint64_t>(host.pe());
  const int target = (host.pe() + 1) % host.pe_count();
  std::uint64_t sent = 0;
  while (!stops.load(std::memory_order_acquire) && !host.board().has_failed()) {
    fill(host.heap().at(kSource), 512, host.pe(), ++sent);
    proxy.put_signal(
        target, {.offset = kAreas + place * 1024, .local = host.heap().at(kSource), .bytes = 512},
        {.offset = kSignals + place * 8, .value = sent});
    proxy.quiet(target);
    proxy.progress();
  }
  return sent;
}

TEST_P(NvshmemRegistration, ChunksAreAddedWhileTrafficRuns) {
  run_hosts(options(4), [](FakeHost& host) {
    std::atomic<bool> stops = false;
    std::uint64_t sent = 0;
    auto traffic =
        host.begin_on_proxy([&](Operations& proxy) { sent = send_until(proxy, host, stops); });
    for (int i = 0; i < 6; ++i) {
      host.heap().add_chunk(host.transport());
      check_chunk(host, host.heap().chunk_count() - 1);
    }
    stops.store(true, std::memory_order_release);
    traffic.get();
    EXPECT_GT(sent, 0U);
    host.board().words[static_cast<std::size_t>(host.pe())] = sent;
    host.meet();
    const int previous = (host.pe() - 1 + host.pe_count()) % host.pe_count();
    const auto place = static_cast<std::uint64_t>(previous);
    const std::uint64_t last = host.board().words[place];
    EXPECT_EQ(host.word(kSignals + place * 8), last);
    EXPECT_EQ(wrong_bytes(host.heap().at(kAreas + place * 1024), 512, previous, last), 0U);
  });
}

TEST_P(NvshmemRegistration, ARegisteredBufferIsLocalToOperations) {
  run_hosts(options(), [](FakeHost& host) {
    constexpr std::size_t kBytes = 200'000;
    std::vector<std::byte> buffer(kBytes + 64);
    for (std::uint64_t round = 1; round <= 2 && host.pe() == 0; ++round) {  // not collective
      host.heap().register_buffer(host.transport(), buffer.data(), buffer.size());
      fill(buffer.data() + 3, kBytes, 0, round);
      const Span span{.offset = 1024, .local = buffer.data() + 3, .bytes = kBytes};
      host.operations().put(1, span, Blocking::Yes);
      std::fill(buffer.begin(), buffer.end(), std::byte{0});
      host.on_proxy([&](Operations& proxy) {
        proxy.get(1, span);
        proxy.quiet(1);
      });
      EXPECT_EQ(wrong_bytes(buffer.data() + 3, kBytes, 0, round), 0U);
      EXPECT_EQ(buffer[2], std::byte{0});
      EXPECT_EQ(buffer[kBytes + 3], std::byte{0});
      host.heap().release_buffer(host.transport(), buffer.data());
    }
    host.meet();
    if (host.pe() == 1) {
      EXPECT_EQ(wrong_bytes(host.heap().at(1024), kBytes, 0, 2), 0U);
    }
  });
}

// The heap's own addresses of the chunk have no memory: who touches them ends by a signal.
TEST_P(NvshmemRegistration, MemoryOfTheUserIsReachedUnderAnAddressOfTheHeap) {
  run_hosts(options(3), [](FakeHost& host) {
    constexpr std::size_t kBytes = 100'000;
    std::vector<std::byte> memory(kChunk);
    const std::uint64_t chunk = host.heap().chunk_count() * kChunk;
    host.heap().add_user_chunk(host.transport(), memory.data());
    fill(memory.data() + 1000, kBytes, host.pe(), 1);
    const int next = (host.pe() + 1) % host.pe_count();
    const int previous = (host.pe() - 1 + host.pe_count()) % host.pe_count();
    host.meet();
    host.on_proxy([&](Operations& proxy) {
      proxy.put_signal(
          next,
          {.offset = chunk + 128 * 1024, .local = host.heap().at(chunk + 1000), .bytes = kBytes},
          {.offset = chunk, .value = 5});
      proxy.quiet(next);
    });
    host.meet();
    std::uint64_t signal = 0;
    std::memcpy(&signal, memory.data(), sizeof(signal));
    EXPECT_EQ(signal, 5U);
    EXPECT_EQ(wrong_bytes(memory.data() + 128 * 1024, kBytes, previous, 1), 0U);
    host.operations().get(
        next,
        {.offset = chunk + 128 * 1024, .local = host.heap().at(chunk + 1000), .bytes = kBytes},
        Blocking::Yes);
    EXPECT_EQ(wrong_bytes(memory.data() + 1000, kBytes, host.pe(), 1), 0U);
    host.meet();
    host.heap().release(host.transport(), chunk / kChunk);  // before the memory goes
  });
}

TEST_P(NvshmemRegistration, AChunkIsReleasedAndRegisteredAgainAtItsAddress) {
  run_hosts(options(3), [](FakeHost& host) {
    for (int round = 0; round < 3; ++round) {
      check_chunk(host, 1);
      host.meet();
      host.heap().release(host.transport(), 1);
      host.meet();
      check_chunk(host, 0);
      host.heap().add_again(host.transport(), 1);
      host.on_proxy([&](Operations& proxy) { proxy.quiet_all(); });
    }
    check_chunk(host, 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Nvshmem, NvshmemRegistration, ::testing::ValuesIn(kInterfaces));

}  // namespace
}  // namespace weft::plugins::nvshmem
