// Regions of the rails transport that come and go: more than 256 at once, numbers that are used
// again, and nothing of a region that went.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "src/base/error.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using namespace transport;
using rails::RailsTransport;

constexpr std::size_t kBytes = 256;
constexpr std::size_t kWordAt = 64;

class RailsRegions : public ::testing::Test {
 protected:
  // A window on each PE; it begins with the bytes of `windows`.
  using Windows = std::vector<std::vector<std::uint64_t>>;

  static Windows make_windows() {
    return Windows(2, std::vector<std::uint64_t>(kBytes / sizeof(std::uint64_t)));
  }

  void add(RegionIndex index, Windows& windows) {
    std::vector<bootstrap::Blob> blobs;
    for (std::size_t pe = 0; pe < 2; ++pe) {
      blobs.push_back(pes_[pe]->transport->add_region(
          index, {reinterpret_cast<std::byte*>(windows[pe].data()), kBytes}));
    }
    for (const auto& pe : pes_) {
      pe->transport->connect_region(index, blobs);
    }
  }

  void remove(RegionIndex index) {
    for (const auto& pe : pes_) {
      pe->transport->remove_region(index);
    }
  }

  [[nodiscard]] Operation put_signal(RegionIndex index) {
    return {.kind = OperationKind::PutSignal,
            .peer = Pe(1),
            .remote = {index, HeapOffset(0)},
            .local = source_.data(),
            .bytes = 8,
            .update = {.code = AtomicCode::Add, .word = {index, HeapOffset(kWordAt)}, .operand = 1},
            .counter = &counter_};
  }

  [[nodiscard]] Operation put(RegionIndex index) {
    Operation operation = put_signal(index);
    operation.kind = OperationKind::Put;
    return operation;
  }

  void run(const Operation& operation) {
    ASSERT_EQ(pes_[0]->transport->post(operation), Status::Ok);
    pes_[0]->transport->flush(Pe(1));
    ASSERT_TRUE(progress_until(pes_, [&] { return counter_.is_idle(); }));
    ASSERT_FALSE(counter_.has_failed());
  }

  SimulatedNetwork network_{1, {}};
  std::vector<std::unique_ptr<RailsPe>> pes_ =
      make_rails_pes(2, 4096, {.eager_bytes_max = 64}, [this](std::uint32_t) {
        RailsTransport::Rails rails;
        rails.push_back(network_.make_rail("nic0"));
        rails.push_back(network_.make_rail("nic1"));
        return rails;
      });
  OperationCounter counter_;
  std::array<std::uint64_t, 1> source_{42};
};

TEST_F(RailsRegions, MoreThanByteNumbersTellApartAreAllReached) {
  constexpr std::uint32_t kCount = 300;
  std::vector<Windows> all;
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    all.push_back(make_windows());
    add(RegionIndex(i), all.back());
  }
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    run(put_signal(RegionIndex(i)));
  }
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    EXPECT_EQ(all[i - 1][1][0], 42U) << i;
    EXPECT_EQ(all[i - 1][1][kWordAt / 8], 1U) << i;
  }
  EXPECT_EQ(*pes_[1]->word(kWordAt), 0U) << "region 256 is not the heap";
}

TEST_F(RailsRegions, OneTooManyIsRefusedWithTheLimit) {
  Windows windows = make_windows();
  try {
    static_cast<void>(pes_[0]->transport->add_region(
        RegionIndex(kRegionCountMax), {reinterpret_cast<std::byte*>(windows[0].data()), kBytes}));
    FAIL() << "nobody was told";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::OutOfMemory);
    EXPECT_NE(std::string_view(error.what()).find("at most 1024"), std::string_view::npos);
  }
}

TEST_F(RailsRegions, ANumberIsUsedAgainThreeHundredTimes) {
  for (std::uint32_t round = 0; round < 300; ++round) {
    Windows windows = make_windows();
    add(RegionIndex(1), windows);
    run(put_signal(RegionIndex(1)));
    EXPECT_EQ(windows[1][0], 42U);
    EXPECT_EQ(windows[1][kWordAt / 8], 1U);
    remove(RegionIndex(1));
  }
}

TEST_F(RailsRegions, WhatWentIsReachedByNobody) {
  EXPECT_EQ(pes_[0]->transport->post(put(RegionIndex(1))), Status::InvalidArgument);
  EXPECT_EQ(pes_[0]->transport->post(put_signal(RegionIndex(1))), Status::InvalidArgument);
  Windows windows = make_windows();
  add(RegionIndex(1), windows);
  run(put(RegionIndex(1)));
  EXPECT_EQ(network_.region_count(), 2 * 2 * 2U) << "heap and window, on two rails of two PEs";
  remove(RegionIndex(1));
  EXPECT_EQ(network_.region_count(), 2 * 2U) << "the NICs have forgotten the window";
  EXPECT_EQ(pes_[0]->transport->post(put(RegionIndex(1))), Status::InvalidArgument);
}

// The NIC reports each attempt as failed, on every link; the links themselves work.
TEST_F(RailsRegions, AnOperationThatNoLinkCarriesOutFailsAloneAndIsNotRepeatedForEver) {
  for (const OperationKind kind :
       {OperationKind::Put, OperationKind::Get, OperationKind::PutSignal}) {
    Windows windows = make_windows();
    add(RegionIndex(1), windows);
    pes_[1]->transport->remove_region(RegionIndex(1));
    Operation operation = put_signal(RegionIndex(1));
    operation.kind = kind;
    operation.bytes = 128;  // not in a message
    std::array<std::byte, 128> memory{};
    operation.local = memory.data();
    operation.update.word = {RegionIndex(0), HeapOffset(kWordAt)};
    OperationCounter counter;
    operation.counter = &counter;
    ASSERT_EQ(pes_[0]->transport->post(operation), Status::Ok);
    pes_[0]->transport->flush(Pe(1));
    ASSERT_TRUE(progress_until(pes_, [&] { return counter.is_idle(); }));
    EXPECT_TRUE(counter.has_failed());
    EXPECT_EQ(*pes_[1]->word(kWordAt), 0U) << "no signal without its data";
    pes_[0]->transport->remove_region(RegionIndex(1));

    add(RegionIndex(1), windows);
    run(put(RegionIndex(1)));
    EXPECT_EQ(windows[1][0], 42U) << "the next one arrives";
    remove(RegionIndex(1));
  }
}

// A tick looks at the peers that have something in flight, however many others there are.
TEST(WatchedPeers, AreThoseWithSomethingInFlight) {
  constexpr std::uint32_t kPeCount = 40;
  SimulatedNetwork network(2, {});
  const auto pes = make_rails_pes(kPeCount, 4096, {}, [&](std::uint32_t) {
    RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic0"));
    rails.push_back(network.make_rail("nic1"));
    return rails;
  });
  EXPECT_EQ(pes[0]->transport->watched_peer_count(), 0U);
  OperationCounter counter;
  std::uint64_t word = 1;
  for (const std::uint32_t pe : {7U, 30U}) {
    ASSERT_EQ(pes[0]->transport->post({.kind = OperationKind::Put,
                                       .peer = Pe(pe),
                                       .remote = {RegionIndex(0), HeapOffset(kWordAt)},
                                       .local = &word,
                                       .bytes = sizeof(word),
                                       .counter = &counter}),
              Status::Ok);
  }
  EXPECT_EQ(pes[0]->transport->watched_peer_count(), 2U);
  ASSERT_TRUE(progress_until(pes, [&] { return counter.is_idle(); }));
  EXPECT_TRUE(progress_until(pes, [&] { return pes[0]->transport->watched_peer_count() == 0; }));
}

// Its first bytes are only for the PEs of the node. Offsets count from its start all the same.
TEST(RailsHeap, IsRegisteredFromWhereOtherNodesAccessItOn) {
  constexpr std::size_t kSkipped = 4096;
  constexpr std::size_t kHeapBytes = 16384;
  SimulatedNetwork network(1, {});
  const auto pes = make_rails_pes(
      2, kHeapBytes, {.eager_bytes_max = 64, .unregistered_bytes = kSkipped}, [&](std::uint32_t) {
        RailsTransport::Rails rails;
        rails.push_back(network.make_rail("nic0"));
        return rails;
      });
  for (std::size_t pe = 0; pe < 2; ++pe) {
    ASSERT_EQ(network.regions(pe).front().data(), pes[pe]->memory.data() + kSkipped);
    ASSERT_EQ(network.regions(pe).front().size(), kHeapBytes - kSkipped);
  }
  std::vector<std::byte> data(1000, std::byte{7});
  std::vector<std::byte> back(data.size());
  OperationCounter counter;
  for (const std::uint64_t offset : {kSkipped, kHeapBytes - data.size()}) {
    for (const OperationKind kind : {OperationKind::Put, OperationKind::Get}) {
      std::byte* local = kind == OperationKind::Put ? data.data() : back.data();
      ASSERT_EQ(pes[0]->transport->post({.kind = kind,
                                         .peer = Pe(1),
                                         .remote = {RegionIndex(0), HeapOffset(offset)},
                                         .local = local,
                                         .bytes = data.size(),
                                         .update = {},
                                         .counter = &counter}),
                Status::Ok);
      ASSERT_TRUE(progress_until(pes, [&] { return counter.is_idle(); }));
    }
    EXPECT_EQ(pes[1]->memory[offset], std::byte{7});
    EXPECT_EQ(pes[1]->memory[offset + data.size() - 1], std::byte{7});
    EXPECT_EQ(back, data);
    std::ranges::fill(back, std::byte{0});
  }
}

}  // namespace
}  // namespace weft::test
