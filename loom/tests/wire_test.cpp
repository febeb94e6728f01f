// Virtual time without NICs: rates, back-dating, and senders that meet on a receiver. And the ring
// of arrivals.
#include "loom/src/wire.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "loom/src/arrivals.hpp"
#include "loom/src/segment.hpp"
#include "loom/src/settings.hpp"
#include "loom/src/shreds.hpp"

namespace loom {
namespace {

TEST(Fabric, IsWholeWhereverItIsFound) {
  std::string folder = ::testing::TempDir() + "fabric.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/a.fabric";
  std::atomic<bool> is_over = false;
  std::thread maker([&] {
    for (int i = 0; i < 200; ++i) {
      close_segment(create_segment(path, "loom", {}, 0));
    }
    is_over = true;
  });
  while (!is_over) {
    try {
      close_segment(open_segment(path));
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("another version"), std::string::npos);
    }
  }
  maker.join();
  remove_fabric(path);
  EXPECT_EQ(::rmdir(folder.c_str()), 0);
}

TEST(Wire, APaceCountsPayloadAndHeaders) {
  const Pace pace{
      .rate_bits_per_s = 1'000'000'000, .mtu_bytes = 1000, .packet_overhead_bytes = 100};
  EXPECT_EQ(pace.ns(1000), 8800U);
  EXPECT_EQ(pace.ns(1001), 8U * 1201);
  EXPECT_EQ(pace.ns(0), 800U);
}

TEST(Wire, ASlowNicHasThatPartOfTheRate) {
  Pace pace{.rate_bits_per_s = 1'000'000'000, .mtu_bytes = 1000, .packet_overhead_bytes = 0};
  pace.permille = 250;
  EXPECT_EQ(pace.ns(1000), 32'000U);
}

TEST(Wire, CellsFollowEachOtherFromTheTimeOfTheirPostNotOfTheLook) {
  Clock out{0};
  Clock in{0};
  const Cell cell{.earliest = 1000, .transmit_ns = 100, .receive_ns = 100, .latency_ns = 5000};
  EXPECT_EQ(send(out, in, cell), 1000U + 5000 + 100);
  EXPECT_EQ(send(out, in, cell), 1100U + 5000 + 100);
  EXPECT_EQ(out.load(), 1200U);
}

TEST(Shreds, CoverEveryByteOnceAndCutOnlyBetweenLines) {
  for (const std::uint64_t address : {0U, 1U, 8U, 63U, 64U, 4095U}) {
    for (std::uint64_t bytes = 1; bytes < 3000; bytes += 1 + bytes / 7) {
      for (std::uint64_t turn = 0; turn < 2 * kShredsMax; ++turn) {
        const Shreds shreds(address, bytes, turn);
        ASSERT_LE(shreds.count(), kShredsMax);
        std::vector<int> copied(bytes, 0);
        for (std::uint64_t i = 0; i < shreds.count(); ++i) {
          const Shreds::Part part = shreds.part(i);
          ASSERT_LE(part.offset + part.bytes, bytes);
          ASSERT_GT(part.bytes, 0U);
          ASSERT_TRUE(part.offset == 0 || (address + part.offset) % kLineBytes == 0);
          for (std::uint64_t at = part.offset; at < part.offset + part.bytes; ++at) {
            ++copied[at];
          }
        }
        ASSERT_EQ(copied, std::vector<int>(bytes, 1)) << address << ", " << bytes << ", " << turn;
      }
    }
  }
}

TEST(Shreds, ARecordOfOneLineIsOnePartAndALongOneBeginsAnywhere) {
  EXPECT_EQ(Shreds(128, 64, 5).count(), 1U);
  EXPECT_EQ(Shreds(100, 64, 5).count(), 2U);
  EXPECT_EQ(Shreds(0, 4096, 3).part(0).offset, 3U * 256);
}

TEST(Wire, TwoSendersShareAReceiver) {
  Clock first{0};
  Clock second{0};
  Clock in{0};
  const Cell cell{.earliest = 0, .transmit_ns = 100, .receive_ns = 100, .latency_ns = 10};
  std::uint64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    last = std::max(send(first, in, cell), send(second, in, cell));
  }
  EXPECT_EQ(last, 10U + 100 * 100);
}

TEST(Arrivals, KeepTheirOrderAndBytesOverManyTurns) {
  const auto ring = std::make_unique<Arrivals>();
  std::vector<std::byte> payload(8000);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::size_t bytes = i * 37 % payload.size();
    std::memset(payload.data(), static_cast<int>(i), bytes);
    ASSERT_TRUE(ring->push({.kind = ArrivalKind::Message, .data = i, .bytes = bytes},
                           {payload.data(), bytes}));
    ASSERT_TRUE(ring->pop([&](const Arrival& arrival, const std::byte* got) {
      EXPECT_EQ(arrival.data, i);
      EXPECT_EQ(arrival.bytes, bytes);
      EXPECT_EQ(std::memcmp(got, payload.data(), bytes), 0);
      return true;
    }));
    EXPECT_FALSE(ring->has_some());
  }
}

TEST(Arrivals, AFullRingTakesNothingUntilSomethingIsTaken) {
  const auto ring = std::make_unique<Arrivals>();
  const std::vector<std::byte> payload(8000);
  const Arrival arrival{.kind = ArrivalKind::Message, .bytes = 8000};
  int count = 0;
  while (ring->push(arrival, payload)) {
    ++count;
  }
  EXPECT_GT(count, 60);
  ASSERT_TRUE(ring->pop([](const Arrival&, const std::byte*) { return true; }));
  ASSERT_TRUE(ring->pop([](const Arrival&, const std::byte*) { return true; }));
  EXPECT_TRUE(ring->push(arrival, payload));
}

// A payload that looks like the number of a later record.
TEST(Arrivals, OldBytesAreNeverTakenForARecord) {
  const auto ring = std::make_unique<Arrivals>();
  for (std::uint64_t i = 0; i < 3 * Arrivals::kBytes / 1024; ++i) {
    std::vector<std::uint64_t> payload(120);
    for (std::size_t k = 0; k < payload.size(); ++k) {
      payload[k] = i * 1024 + k * 8 + Arrivals::kBytes + 1;
    }
    ASSERT_TRUE(ring->push({.kind = ArrivalKind::Message, .bytes = 960},
                           std::as_bytes(std::span(payload))));
    ASSERT_TRUE(ring->pop([](const Arrival&, const std::byte*) { return true; }));
    ASSERT_FALSE(ring->pop([](const Arrival&, const std::byte*) { return true; }));
  }
}

TEST(Arrivals, ManyWritersLoseNothing) {
  const auto ring = std::make_unique<Arrivals>();
  constexpr std::uint64_t kEach = 5000;
  constexpr std::size_t kWriters = 3;
  std::vector<std::thread> writers;
  for (std::size_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (std::uint64_t i = 0; i < kEach;) {
        const std::vector<std::byte> payload(i % 300, static_cast<std::byte>(writer));
        const Arrival arrival{.kind = ArrivalKind::Message,
                              .source = static_cast<std::uint32_t>(writer),
                              .data = i,
                              .bytes = payload.size()};
        if (ring->push(arrival, payload)) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::vector<std::uint64_t> next(kWriters, 0);
  for (std::uint64_t got = 0; got < kWriters * kEach;) {
    const bool took = ring->pop([&](const Arrival& arrival, const std::byte* payload) {
      EXPECT_EQ(arrival.data, next[arrival.source]++);
      for (std::uint64_t k = 0; k < arrival.bytes; ++k) {
        EXPECT_EQ(payload[k], static_cast<std::byte>(arrival.source));
      }
      return true;
    });
    got += took ? 1 : 0;
    if (!took) {
      std::this_thread::yield();
    }
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
}

TEST(Settings, EachKnobTakesItsUnitAndRefusesNonsenseInOneSentence) {
  for (const Knob& knob : knobs()) {
    Settings settings = default_settings();
    EXPECT_NO_THROW(set(settings, knob, std::to_string(knob.least), "it"));
    try {
      set(settings, knob, "much", variable_of(knob));
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(
          std::string(error.what()).find(variable_of(knob) + " is 'much'; it takes a number from"),
          std::string::npos);
    }
  }
  Settings settings = default_settings();
  set(settings, knobs()[3], "2.5", "it");
  EXPECT_EQ(settings.latency_ns, 2500U);
}

}  // namespace
}  // namespace loom
