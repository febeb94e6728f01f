#include "tests/conformance/transport_suite.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "src/transport/atomic_update.hpp"
#include "src/transport/mapped/atomics.hpp"

namespace weft::test {

using transport::AtomicCode;
using transport::AtomicUpdate;
using transport::GatherSegment;
using transport::Operation;
using transport::OperationCounter;
using transport::OperationKind;

void TransportSuite::SetUp() {
  bytes_ = 2 * GetParam().bytes_max + 8192;
  pes_ = GetParam().make(kPeCount, bytes_ + 4096);
  base_ = (pes_->reserved_bytes() + 63) / 64 * 64;
  for (std::uint32_t pe = 0; pe < kPeCount; ++pe) {
    std::fill_n(at(Pe(pe), 0), bytes_, kPoison);
  }
}

void TransportSuite::progress_all() {
  for (std::uint32_t pe = 0; pe < kPeCount; ++pe) {
    pes_->transport(Pe(pe)).progress();
  }
}

void TransportSuite::post(Pe pe, const Operation& operation) {
  Status status = pes_->transport(pe).post(operation);
  for (std::uint64_t pass = 0; status == Status::Again && pass < 10'000'000; ++pass) {
    progress_all();
    status = pes_->transport(pe).post(operation);
  }
  ASSERT_EQ(status, Status::Ok);
}

void TransportSuite::complete(Pe pe, Pe peer, const OperationCounter& counter) {
  pes_->transport(pe).flush(peer);
  for (std::uint64_t pass = 0; !counter.is_idle() && pass < 10'000'000; ++pass) {
    progress_all();
  }
  ASSERT_TRUE(counter.is_idle());
  ASSERT_FALSE(counter.has_failed());
}

Operation TransportSuite::put(Pe to, std::uint64_t offset, std::vector<std::byte>& source) {
  return {.kind = OperationKind::Put,
          .peer = to,
          .remote = remote(to, offset),
          .local = source.data(),
          .bytes = source.size(),
          .update = {}};
}

std::vector<GatherSegment> TransportSuite::scattered(Pe to,
                                                     std::uint64_t offset,
                                                     std::vector<std::byte>& source,
                                                     std::span<const std::size_t> parts) const {
  std::vector<GatherSegment> segments;
  std::byte* from = source.data();
  for (const std::size_t bytes : parts) {
    segments.push_back({.remote = remote(to, offset), .local = from, .bytes = bytes});
    from += bytes;
    offset += 2 * bytes;
  }
  return segments;
}

void TransportSuite::await_bits(std::uint64_t rounds, FunctionRef<void(std::uint64_t)> on_bit) {
  const std::uint64_t all = (std::uint64_t{1} << rounds) - 1;
  std::uint64_t seen = 0;
  for (std::uint64_t pass = 0; seen != all && pass < 10'000'000; ++pass) {
    progress_all();
    const std::uint64_t now = transport::load_word(&word(Pe(1), 0));
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (((now & ~seen) >> round & 1U) != 0) {
        on_bit(round);
      }
    }
    seen = now;
  }
  EXPECT_EQ(seen, all);
}

void TransportSuite::expect_scattered(Pe at_pe,
                                      std::uint64_t offset,
                                      const std::vector<std::byte>& source,
                                      std::span<const std::size_t> parts) {
  const std::byte* from = source.data();
  for (const std::size_t bytes : parts) {
    ASSERT_EQ(std::memcmp(at(at_pe, offset), from, bytes), 0) << bytes << " bytes at " << offset;
    const std::vector<std::byte> gap(bytes, kPoison);
    ASSERT_EQ(std::memcmp(at(at_pe, offset + bytes), gap.data(), bytes), 0) << "behind " << offset;
    from += bytes;
    offset += 2 * bytes;
  }
}

Operation TransportSuite::atomic(Pe to, const AtomicUpdate& update) {
  return {.kind = OperationKind::Atomic,
          .peer = to,
          .remote = update.word,
          .bytes = update.element_bytes,
          .update = update};
}

namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8U) * 13 + (i >> 16U));
  }
  return data;
}

// Around every boundary that a method, a page, a stripe or an eager limit may have.
std::vector<std::size_t> sizes_up_to(std::size_t bytes_max) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 1; bytes <= 70; ++bytes) {
    sizes.push_back(bytes);
  }
  for (std::size_t power = 128; power <= bytes_max; power *= 2) {
    sizes.insert(sizes.end(), {power - 1, power, power + 1});
  }
  std::erase_if(sizes, [&](std::size_t bytes) { return bytes > bytes_max; });
  return sizes;
}

TEST_P(TransportSuite, PutWritesEverySizeExactlyAndNothingBeside) {
  OperationCounter counter;
  for (const std::size_t bytes : sizes_up_to(GetParam().bytes_max)) {
    const std::uint64_t offset = 64 + bytes % 9;  // aligned and not
    std::vector<std::byte> source = pattern(bytes, bytes);
    std::fill_n(at(Pe(1), 0), offset + bytes + 64, kPoison);
    Operation operation = put(Pe(1), offset, source);
    operation.counter = &counter;
    post(Pe(0), operation);
    complete(Pe(0), Pe(1), counter);
    ASSERT_EQ(std::memcmp(at(Pe(1), offset), source.data(), bytes), 0) << bytes;
    ASSERT_EQ(*(at(Pe(1), offset) - 1), kPoison) << bytes;
    ASSERT_EQ(*at(Pe(1), offset + bytes), kPoison) << bytes;
  }
}

TEST_P(TransportSuite, GetReadsEverySizeExactlyAndNothingBeside) {
  OperationCounter counter;
  for (const std::size_t bytes : sizes_up_to(GetParam().bytes_max)) {
    const std::uint64_t offset = 64 + bytes % 9;
    const std::vector<std::byte> expected = pattern(bytes, bytes + 1);
    std::copy(expected.begin(), expected.end(), at(Pe(2), offset));
    std::vector<std::byte> dest(bytes + 2, kPoison);
    post(Pe(0), {.kind = OperationKind::Get,
                 .peer = Pe(2),
                 .remote = remote(Pe(2), offset),
                 .local = dest.data() + 1,
                 .bytes = bytes,
                 .update = {},
                 .counter = &counter});
    complete(Pe(0), Pe(2), counter);
    ASSERT_EQ(std::memcmp(dest.data() + 1, expected.data(), bytes), 0) << bytes;
    ASSERT_EQ(dest.front(), kPoison) << bytes;
    ASSERT_EQ(dest.back(), kPoison) << bytes;
  }
}

TEST_P(TransportSuite, ACopiedSourceMayBeOverwrittenAsSoonAsPostReturns) {
  OperationCounter counter;
  constexpr std::size_t kBytes = 777;
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<std::byte> source = pattern(kBytes, round);
    Operation operation = put(Pe(1), round * 1024, source);
    operation.copy_source = true;
    operation.counter = &counter;
    post(Pe(0), operation);
    std::fill(source.begin(), source.end(), std::byte{0x5A});
  }
  complete(Pe(0), Pe(1), counter);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::vector<std::byte> expected = pattern(kBytes, round);
    ASSERT_EQ(std::memcmp(at(Pe(1), round * 1024), expected.data(), kBytes), 0) << round;
  }
}

TEST_P(TransportSuite, EveryAtomicOfEveryWidthDoesWhatTheReferenceDoes) {
  // Without the top bit of each exponent: of two NaNs a compiler may keep either.
  constexpr std::uint64_t kNumbers = ~std::uint64_t{0x4000'4000'4000'4000};
  std::mt19937_64 random(7);
  OperationCounter counter;
  for (const std::uint8_t width : {std::uint8_t{2}, std::uint8_t{4}, std::uint8_t{8}}) {
    for (std::uint32_t i = 0; i < 240; ++i) {
      const auto code = static_cast<AtomicCode>(i % transport::kAtomicCodeCount);
      std::uint64_t reference = random() & kNumbers;
      AtomicUpdate update{.code = code,
                          .element_bytes = width,
                          .word = remote(Pe(1), 128),
                          .operand = random() & kNumbers,
                          .compare = random() % 2 == 0 ? reference : random()};
      transport::store_word(&word(Pe(1), 128), reference);
      const std::uint64_t old = transport::apply_atomic(&reference, update);
      std::uint64_t result = 0;
      Operation operation = atomic(Pe(1), update);
      operation.result = i % 3 == 0 ? nullptr : &result;
      operation.counter = &counter;
      post(Pe(0), operation);
      complete(Pe(0), Pe(1), counter);
      ASSERT_EQ(transport::load_word(&word(Pe(1), 128)), reference) << i << " width " << int{width};
      ASSERT_TRUE(operation.result == nullptr || result == old) << i << " width " << int{width};
    }
  }
}

TEST_P(TransportSuite, ASignalIsNeverSeenBeforeItsData) {
  constexpr std::uint64_t kRounds = 40;
  constexpr std::size_t kSlot = 20'000;
  OperationCounter counter;
  word(Pe(1), 0) = 0;
  std::vector<std::vector<std::byte>> sources;
  const auto expect_data = [&](std::uint64_t round) {
    const std::vector<std::byte>& source = sources[round];
    ASSERT_EQ(std::memcmp(at(Pe(1), 64 + round * kSlot), source.data(), source.size()), 0) << round;
  };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    sources.push_back(pattern(1 + (round * 1237) % kSlot, round));
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    Operation operation = put(Pe(1), 64 + round * kSlot, sources[round]);
    operation.kind = OperationKind::PutSignal;
    operation.update = {
        .code = AtomicCode::Add, .word = remote(Pe(1), 0), .operand = std::uint64_t{1} << round};
    operation.counter = &counter;
    post(Pe(0), operation);
  }
  pes_->transport(Pe(0)).flush(Pe(1));
  await_bits(kRounds, expect_data);
  complete(Pe(0), Pe(1), counter);
}

// Sizes of segments: single bytes, odd ones, and some that are cut into pieces.
std::vector<std::size_t> segment_sizes(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    sizes[i] = i % 7 == 3 ? 20'000 + i : 1 + (i * 37 + seed * 11) % 900;
  }
  return sizes;
}

std::size_t sum_of(const std::vector<std::size_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

TEST_P(TransportSuite, AGatherPutsEachSegmentInItsPlaceAndCountsOnce) {
  if (!pes_->transport(Pe(0)).gathers()) {
    GTEST_SKIP() << "this transport takes no segments";
  }
  for (const std::size_t count : {1U, 2U, 60U}) {
    for (const bool copies : {false, true}) {
      const std::vector<std::size_t> sizes = segment_sizes(count, count);
      std::vector<std::byte> source = pattern(sum_of(sizes), count + (copies ? 1 : 0));
      const std::vector<std::byte> before = source;
      std::fill_n(at(Pe(1), 0), bytes_, kPoison);
      OperationCounter counter;
      Operation operation = put(Pe(1), 0, source);
      const std::vector<GatherSegment> segments = scattered(Pe(1), 64, source, sizes);
      operation.segments = segments;
      operation.copy_source = copies;
      operation.counter = &counter;
      post(Pe(0), operation);
      if (copies) {
        std::ranges::fill(source, std::byte{0});
      }
      complete(Pe(0), Pe(1), counter);
      expect_scattered(Pe(1), 64, before, sizes);
    }
  }
}

TEST_P(TransportSuite, TheSignalOfAGatherIsNeverSeenBeforeAnyOfItsSegments) {
  if (!pes_->transport(Pe(0)).gathers()) {
    GTEST_SKIP() << "this transport takes no segments";
  }
  constexpr std::uint64_t kRounds = 8;
  const std::uint64_t room = bytes_ / kRounds / 64 * 64 - 64;
  OperationCounter counter;
  word(Pe(1), 0) = 0;
  std::vector<std::vector<std::size_t>> sizes;
  std::vector<std::vector<std::byte>> sources;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    sizes.push_back(segment_sizes(1 + round * 2, round));
    sources.push_back(pattern(sum_of(sizes[round]), round));
    ASSERT_LT(2 * sources[round].size(), room);
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    Operation operation = put(Pe(1), 0, sources[round]);
    const std::vector<GatherSegment> segments =
        scattered(Pe(1), 64 + round * room, sources[round], sizes[round]);
    operation.segments = segments;
    operation.kind = OperationKind::PutSignal;
    operation.update = {
        .code = AtomicCode::Add, .word = remote(Pe(1), 0), .operand = std::uint64_t{1} << round};
    operation.counter = &counter;
    post(Pe(0), operation);
  }
  pes_->transport(Pe(0)).flush(Pe(1));
  await_bits(kRounds, [&](std::uint64_t round) {
    expect_scattered(Pe(1), 64 + round * room, sources[round], sizes[round]);
  });
  complete(Pe(0), Pe(1), counter);
}

TEST_P(TransportSuite, CountersMoveExactlyOnceForEachOperationOfAnyKind) {
  constexpr std::uint32_t kOperations = 320;
  std::array<OperationCounter, kPeCount> counters;
  std::vector<std::byte> source = pattern(100, 1);
  std::vector<std::byte> dests(kOperations * source.size());  // gets into one place would race
  word(Pe(1), 0) = 0;
  word(Pe(2), 0) = 0;
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    const Pe to(1 + i % 2);
    Operation operation = put(to, 1024, source);
    operation.counter = &counters[to.value];
    operation.kind = static_cast<OperationKind>(i / 2 % 4);
    operation.update = {.code = AtomicCode::Add, .word = remote(to, 0), .operand = 1};
    if (operation.kind == OperationKind::Get) {
      operation.local = dests.data() + i * source.size();
    }
    post(Pe(0), operation);
  }
  complete(Pe(0), Pe(1), counters[1]);
  complete(Pe(0), Pe(2), counters[2]);
  for (int pass = 0; pass < 1000; ++pass) {
    progress_all();
  }
  // One completion too many would show as a counter that is not idle.
  EXPECT_TRUE(counters[1].is_idle());
  EXPECT_TRUE(counters[2].is_idle());
  EXPECT_EQ(transport::load_word(&word(Pe(1), 0)) + transport::load_word(&word(Pe(2), 0)),
            kOperations / 2);
}

TEST_P(TransportSuite, WhatIsRefusedWithAgainHasNotBeenTaken) {
  OperationCounter counter;
  word(Pe(1), 0) = 0;
  std::uint64_t taken = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    Operation operation =
        atomic(Pe(1), {.code = AtomicCode::Add, .word = remote(Pe(1), 0), .operand = 1});
    operation.counter = &counter;
    const Status status = pes_->transport(Pe(0)).post(operation);
    ASSERT_TRUE(status == Status::Ok || status == Status::Again);
    taken += status == Status::Ok ? 1 : 0;
    if (i % 1000 == 999) {
      progress_all();
    }
  }
  complete(Pe(0), Pe(1), counter);
  EXPECT_GT(taken, 0U);
  EXPECT_EQ(transport::load_word(&word(Pe(1), 0)), taken);
}

TEST_P(TransportSuite, ConcurrentAddsFromAllPesSumExactly) {
  constexpr std::uint32_t kAdds = 2000;
  word(Pe(0), 0) = 0;
  std::uint32_t finished = 0;
  std::vector<std::jthread> threads;
  for (std::uint32_t pe = 1; pe < kPeCount; ++pe) {
    threads.emplace_back([this, pe, &finished] {
      OperationCounter counter;
      for (std::uint32_t i = 0; i < kAdds; ++i) {
        Operation operation =
            atomic(Pe(0), {.code = AtomicCode::Add, .word = remote(Pe(0), 0), .operand = 1});
        operation.counter = &counter;
        while (pes_->transport(Pe(pe)).post(operation) == Status::Again) {
          pes_->transport(Pe(pe)).progress();
        }
      }
      pes_->transport(Pe(pe)).flush(Pe(0));
      while (!counter.is_idle()) {
        pes_->transport(Pe(pe)).progress();
      }
      // SYNC suite-finished: pairs with the load below.
      AtomicRef(finished).fetch_add(1, std::memory_order_release);
    });
  }
  // SYNC suite-finished: pairs with the add above.
  while (AtomicRef(finished).load(std::memory_order_acquire) < kPeCount - 1) {
    pes_->transport(Pe(0)).progress();
    std::this_thread::yield();
  }
  EXPECT_EQ(transport::load_word(&word(Pe(0), 0)), std::uint64_t{kAdds} * (kPeCount - 1));
}

TEST_P(TransportSuite, EveryPeerIsReachableAndNoneIsLost) {
  for (std::uint32_t to = 1; to < kPeCount; ++to) {
    EXPECT_EQ(pes_->transport(Pe(0)).peer_status(Pe(to)), Status::Ok);
  }
  pes_->transport(Pe(0)).wait_for_event(100);
}

}  // namespace
}  // namespace weft::test
