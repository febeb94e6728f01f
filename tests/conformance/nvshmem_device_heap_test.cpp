// The NVSHMEM plugin with a symmetric heap in memory of a GPU, for which guarded memory of the host
// stands: whatever the plugin or the rails touch by the CPU ends by a signal.
#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

#include "src/base/error.hpp"
#include "tests/support/nvshmem_sessions.hpp"

namespace weft::test {
namespace {

using namespace plugins::nvshmem;

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kSource = 64 << 10;
constexpr std::uint64_t kDest = 512 << 10;
constexpr std::uint64_t kResults = 32 << 10;  // 16 bytes each, as kernels have them

std::byte pattern(int pe, std::uint64_t round, std::size_t i) {
  return static_cast<std::byte>(static_cast<std::size_t>(pe) * 31 + round * 7 + i * 3 + (i >> 8U));
}

void fill(std::byte* memory, std::size_t bytes, int pe, std::uint64_t round) {
  for (std::size_t i = 0; i < bytes; ++i) {
    memory[i] = pattern(pe, round, i);
  }
}

std::size_t wrong(const std::byte* memory, std::size_t bytes, int pe, std::uint64_t round) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    count += memory[i] != pattern(pe, round, i) ? 1 : 0;
  }
  return count;
}

Pe as_pe(int pe) {
  return Pe(static_cast<std::uint32_t>(pe));
}

// How the host's functions that block ask, and how kernels do.
constexpr RmaVerb blocking(int code) {
  return {.code = code, .is_nbi = 0, .is_stream = 0, .stream = nullptr};
}

constexpr RmaVerb by_kernel(int code) {
  return {.code = code, .is_nbi = 1, .is_stream = 0, .stream = nullptr};
}

AmoVerbNew verb_of(int code, bool is_float = false) {
  return {
      .code = code, .is_fetch = 0, .is_value = 0, .is_compare = 0, .is_float = is_float ? 1 : 0};
}

AmoDescription description(SessionPe& self, int peer, std::uint64_t word, std::uint64_t operand) {
  AmoDescription target{};
  target.word = self.on(peer, word);
  target.operand = operand;
  return target;
}

TEST(NvshmemDeviceHeap, PutsAndGetsMoveWhatTheySay) {
  run_sessions({}, [](SessionPe& self) {
    std::uint64_t round = 0;
    for (const std::size_t bytes : {1UL, 8UL, 100UL, 4096UL, 65'537UL, 300'003UL}) {
      for (const bool is_self : {false, true}) {
        ++round;
        const int target = is_self ? self.pe() : self.next();
        const int source = is_self ? self.pe() : self.previous();
        fill(GuardedMemory::reached(self.at(kSource)), bytes, self.pe(), round);
        self.meet();
        self.session().put(as_pe(target), by_kernel(kRmaPut), self.on(target, kDest),
                           self.at(kSource), bytes, kProxyQueue);
        self.session().quiet(as_pe(target), kProxyQueue);
        self.meet();
        EXPECT_EQ(wrong(GuardedMemory::reached(self.at(kDest)), bytes, source, round), 0U) << bytes;
        const std::uint64_t back = kChunkBytes + 100;
        self.session().get(as_pe(target), blocking(kRmaGet), self.on(target, kDest), self.at(back),
                           bytes, kHostQueue);
        EXPECT_EQ(wrong(GuardedMemory::reached(self.at(back)), bytes, self.pe(), round), 0U)
            << bytes;
        self.meet();
      }
    }
  });
}

TEST(NvshmemDeviceHeap, ValuesOnTheStackArrive) {
  run_sessions({}, [](SessionPe& self) {
    for (int peer = 0; peer < self.pe_count(); ++peer) {
      for (const std::size_t bytes : {1UL, 2UL, 4UL, 8UL}) {
        std::uint64_t value = 0x0102'0304'0506'0708U * (static_cast<std::uint64_t>(self.pe()) + 1);
        const auto place = static_cast<std::uint64_t>(self.pe()) * 64 + bytes * 8;
        self.session().put(as_pe(peer), blocking(kRmaValue), self.on(peer, place), &value, bytes,
                           kProxyQueue);
        value = 0;
      }
    }
    for (int peer = 0; peer < self.pe_count(); ++peer) {
      self.session().quiet(as_pe(peer), kProxyQueue);
    }
    self.meet();
    for (int peer = 0; peer < self.pe_count(); ++peer) {
      const std::uint64_t value = 0x0102'0304'0506'0708U * (static_cast<std::uint64_t>(peer) + 1);
      const auto place = static_cast<std::uint64_t>(peer) * 64;
      EXPECT_EQ(self.word<std::uint8_t>(place + 8), static_cast<std::uint8_t>(value));
      EXPECT_EQ(self.word<std::uint16_t>(place + 16), static_cast<std::uint16_t>(value));
      EXPECT_EQ(self.word<std::uint32_t>(place + 32), static_cast<std::uint32_t>(value));
      EXPECT_EQ(self.word(place + 64), value);
    }
  });
}

// Each PE adds to a word of each PE; the old values are all different.
TEST(NvshmemDeviceHeap, FetchedValuesAreInTheHeapWhenQuietReturns) {
  constexpr std::uint64_t kRounds = 40;
  run_sessions({.faults = {.delay = 0.6}}, [](SessionPe& self) {
    std::vector<std::uint64_t> seen;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      for (int peer = 0; peer < self.pe_count(); ++peer) {
        const std::uint64_t result = kResults + static_cast<std::uint64_t>(peer) * 16;
        self.set_word<std::uint64_t>(result, 0xEEEE);
        self.set_word<std::uint64_t>(result + 8, 0xF1A6);
        AmoDescription target = description(self, peer, 0, 1);
        target.result = self.at(result);
        self.session().amo(as_pe(peer), verb_of(kAmoFetchAdd), target, 8, kProxyQueue);
      }
      for (int peer = 0; peer < self.pe_count(); ++peer) {
        self.session().quiet(as_pe(peer), kProxyQueue);
        const std::uint64_t result = kResults + static_cast<std::uint64_t>(peer) * 16;
        const auto limit = kRounds * static_cast<std::uint64_t>(self.pe_count());
        EXPECT_LT(self.word(result), limit);
        EXPECT_EQ(self.word(result + 8), 0xF1A6U) << "the flag is the kernel's";
      }
      seen.push_back(self.word(kResults));
    }
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
    self.meet();
    EXPECT_EQ(self.word(0), kRounds * static_cast<std::uint64_t>(self.pe_count()));
  });
}

TEST(NvshmemDeviceHeap, AtomicsOfAllWidthsReachWordsHereAndThere) {
  run_sessions({}, [](SessionPe& self) {
    self.set_word<std::uint32_t>(128, 0xFF00);
    self.set_word<float>(136, 1.5F);
    self.meet();
    for (const int target : {self.pe(), self.next()}) {
      self.session().amo(as_pe(target), verb_of(kAmoOr), description(self, target, 128, 0x0F), 4,
                         kProxyQueue);
      self.session().amo(as_pe(target), verb_of(kAmoAdd, true),
                         description(self, target, 136, 0x3F00'0000), 4, kProxyQueue);  // 0.5
      self.session().amo(as_pe(target), verb_of(kAmoInc), description(self, target, 144, 0), 8,
                         kProxyQueue);
      self.session().quiet(as_pe(target), kProxyQueue);
    }
    self.meet();
    EXPECT_EQ(self.word<std::uint32_t>(128), 0xFF0FU);
    EXPECT_EQ(self.word<float>(136), 2.5F);
    EXPECT_EQ(self.word(144), 2U);
  });
}

struct Parts {
  std::vector<MemoryDescription> remote;
  std::vector<MemoryDescription> local;
  std::vector<BytesDescription> bytes;

  void add(const MemoryDescription& there, std::byte* here, std::size_t count) {
    remote.push_back(there);
    local.push_back({.address = here, .offset = 0, .handle = nullptr});
    bytes.push_back(
        {.element_count = count, .element_bytes = 1, .source_stride = 1, .target_stride = 1});
  }
};

TEST(NvshmemDeviceHeap, SignalsComeAfterTheirRanges) {
  run_sessions({.faults = {.delay = 0.7}}, [](SessionPe& self) {
    constexpr std::size_t kPart = 40'000;
    for (std::uint64_t round = 1; round <= 10; ++round) {
      std::byte* source = self.at(kSource);
      fill(GuardedMemory::reached(source), 2 * kPart, self.pe(), round);
      for (const int target : {self.next(), self.pe()}) {
        const std::uint64_t dest = target == self.pe() ? kDest + 2 * kPart : kDest;
        const std::uint64_t word = target == self.pe() ? 8 : 0;
        Parts parts;
        parts.add(self.on(target, dest), source, kPart);
        parts.add(self.on(target, kChunkBytes + dest), source + kPart, kPart);
        const AmoDescription signal = description(self, target, word, round);
        self.session().put_signal(as_pe(target),
                                  {.remote = parts.remote,
                                   .local = parts.local,
                                   .bytes = parts.bytes,
                                   .signal_verb = verb_of(kAmoSignalSet),
                                   .signal = &signal},
                                  kProxyQueue);
      }
      self.wait_until([&] { return self.word(0) == round; });
      EXPECT_EQ(self.word(8), round);
      std::vector<std::byte> found(2 * kPart);
      for (const std::uint64_t dest : {kDest, kDest + 2 * kPart}) {
        self.words().read(found.data(), self.at(dest), kPart);
        self.words().read(found.data() + kPart, self.at(kChunkBytes + dest), kPart);
        EXPECT_EQ(
            wrong(found.data(), found.size(), dest == kDest ? self.previous() : self.pe(), round),
            0U);
      }
      self.session().quiet(as_pe(self.next()), kProxyQueue);
      self.meet();
    }
  });
}

TEST(NvshmemDeviceHeap, BuffersOfThisPeAloneMayBeOfEitherKind) {
  run_sessions({}, [](SessionPe& self) {
    constexpr std::size_t kBytes = 50'000;
    const GuardedMemory of_gpu(kBytes);
    std::vector<std::byte> of_host(kBytes);
    std::uint64_t round = 0;
    for (const std::span<std::byte> buffer : {of_gpu.memory(), std::span(of_host)}) {
      for (const int target : {self.next(), self.pe()}) {
        ++round;
        MemoryHandle handle{};
        self.session().add_local_buffer(handle, buffer);
        fill(GuardedMemory::reached(buffer.data()), kBytes, self.pe(), round);
        self.session().put(as_pe(target), blocking(kRmaPut), self.on(target, kDest), buffer.data(),
                           kBytes, kHostQueue);
        std::memset(GuardedMemory::reached(buffer.data()), 0, kBytes);
        self.session().get(as_pe(target), blocking(kRmaGet), self.on(target, kDest), buffer.data(),
                           kBytes, kHostQueue);
        EXPECT_EQ(wrong(GuardedMemory::reached(buffer.data()), kBytes, self.pe(), round), 0U);
        self.session().release(handle);
        self.meet();
      }
    }
  });
}

TEST(NvshmemDeviceHeap, AHeapThatNoNicReachesIsRefusedWithTheRemedy) {
  run_sessions({.chunk_count = 0, .nics_reach_gpus = false}, [](SessionPe& self) {
    const GuardedMemory memory(4096);
    MemoryHandle handle{};
    try {
      self.session().add_chunk(handle, memory.memory(), memory.memory().data());
      ADD_FAILURE() << "nobody was told";
    } catch (const Error& error) {
      for (const char* part :
           {"the NIC nic0", "this rail does not take it", "NVSHMEM_HEAP_KIND=SYSMEM"}) {
        EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
            << error.what();
      }
    }
    EXPECT_THROW(self.session().add_local_buffer(handle, memory.memory()), Error);
  });
}

}  // namespace
}  // namespace weft::test
