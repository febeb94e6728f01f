// Data that NICs carry from GPU to GPU, step by step: what waits for it, what it waits for, and
// which data is staged all the same. One thread drives all PEs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "src/base/clock.hpp"
#include "tests/support/manual_gpu.hpp"
#include "tests/support/proxy_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using proxy::CopyDirection;
using transport::rails::RailsTransport;

constexpr std::size_t kBulk = 3000;
constexpr std::size_t kSource = std::size_t{1} << 20U;
constexpr std::size_t kDest = 8192;
constexpr std::uint64_t kHeapKey = 3;  // of a simulated rail: after the probe's and the staging's
constexpr std::byte kFill{0x5C};

class ProxyGpuDirect : public ::testing::Test {
 protected:
  // The rail of PE `refuses` does not take its GPU's memory. The heap starts with
  // `first_chunk_bytes`; 0: it is whole.
  void start(std::uint32_t pe_count,
             std::uint32_t refuses = ~0U,
             std::size_t first_chunk_bytes = 0) {
    const ProxyOptions options{
        .pe_count = pe_count,
        .ring_capacity = 2 * proxy::kGpuDirectWindow,
        .engine = {.staging = {.slots_per_peer = 4, .slot_bytes = 8192}, .peer_check_us = 0},
        .rails = {.rail_stall_ms = 20, .peer_lost_ms = 60},
        .threads = false,
        .direct = true,
        .first_chunk_bytes = first_chunk_bytes};
    pes_ = std::make_unique<ProxyPes>(options, [this, refuses](std::uint32_t pe) {
      RailsTransport::Rails made;
      made.push_back(network_.make_rail("nic", pe != refuses));
      return made;
    });
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      at(pe).make_engine(options, copiers_[pe], appliers_[pe]);
      std::fill_n(at(pe).heap.data() + kSource, kBulk, kFill);
    }
  }

  ProxyPe& at(std::uint32_t pe) { return (*pes_)[pe]; }

  std::byte* heap(std::uint32_t pe) { return at(pe).heap.data(); }

  void poll(int passes = 3000) {
    for (int i = 0; i < passes; ++i) {
      pes_->poll_all();
    }
  }

  // What a GPU thread that waits would do.
  std::uint32_t apply(std::uint32_t pe) { return test::drain(at(pe).inbox.view()); }

  bool is_complete(std::uint32_t pe, std::uint64_t position) {
    return device::RingProducer<proxy::HostMemory>(at(pe).rings[0]->view()).is_complete(position);
  }

  bool has_data(std::uint32_t pe, std::size_t offset = kDest) {
    return std::all_of(heap(pe) + offset, heap(pe) + offset + kBulk,
                       [](std::byte byte) { return byte == kFill; });
  }

  std::uint64_t copies(std::uint32_t pe) {
    return copiers_[pe].issued(CopyDirection::ToGpu) + copiers_[pe].issued(CopyDirection::FromGpu);
  }

  std::uint64_t put(const std::byte* source, std::size_t dest = kDest) {
    return at(0).thread().put(heap(0) + dest, source, kBulk, Pe(1));
  }

  static device::Command get_command(std::byte* dest,
                                     std::uint64_t source_offset = kSource,
                                     std::uint64_t bytes = kBulk) {
    device::Command get;
    get.kind = device::CommandKind::Get;
    get.flags = device::kReplyWanted;
    get.pe = 1;
    device::GetCommand{.dest_address = reinterpret_cast<std::uint64_t>(dest),
                       .source_offset = source_offset,
                       .bytes = bytes}
        .write_to(get);
    return get;
  }

  SimulatedNetwork network_{31, {.delay = 0.1, .depth = 2 * proxy::kGpuDirectWindow}};
  std::array<ManualCopier, 3> copiers_;
  std::array<CountingApplier, 3> appliers_;
  std::unique_ptr<ProxyPes> pes_;
};

TEST_F(ProxyGpuDirect, ASignalWaitsForTheDataThatNicsBringAndThenForItsFlush) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  GpuThread gpu = at(0).thread();
  const std::uint64_t position =
      gpu.put_signal(heap(0) + kDest, heap(0) + kSource, kBulk, at(0).word(64), 1, Pe(1));
  poll();
  EXPECT_EQ(network_.held(), 1U);
  EXPECT_EQ(apply(1), 0U);
  EXPECT_EQ(copiers_[1].shows, 0);
  network_.let_go();
  poll();
  EXPECT_TRUE(has_data(1));
  EXPECT_EQ(copiers_[1].shows, 1);
  EXPECT_FALSE(is_complete(0, position));
  EXPECT_EQ(apply(1), 1U);
  EXPECT_EQ(*at(1).word(64), 1U);
  poll();
  EXPECT_TRUE(is_complete(0, position));
  EXPECT_EQ(copies(0) + copies(1), 0U);
}

TEST_F(ProxyGpuDirect, TheLongRowsOfAListAreOneTransferAndItsSignalWaitsForThem) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  const std::array<GpuThread::Segment, 4> rows{{{heap(0) + kDest, heap(0) + kSource, 1000},
                                                {heap(0) + kDest + 1000, heap(0) + kSource, 100},
                                                {heap(0) + kDest + 1100, heap(0) + kSource, 900},
                                                {heap(0) + kDest + 2000, heap(0) + kSource, 1000}}};
  const std::uint64_t position = at(0).thread().putv(rows, at(0).word(64), 1, Pe(1));
  poll();
  EXPECT_EQ(network_.held(), 3U);
  EXPECT_EQ(apply(1), 1U);  // the row that is carried waits for none
  EXPECT_EQ(*at(1).word(64), 0U);
  network_.let_go();
  poll();
  EXPECT_EQ(apply(1), 1U);
  EXPECT_EQ(*at(1).word(64), 1U);
  EXPECT_TRUE(has_data(1));
  poll();
  EXPECT_TRUE(is_complete(0, position));
  EXPECT_EQ(copiers_[1].shows, 1);
  EXPECT_EQ(copies(0) + copies(1), 0U);
}

TEST_F(ProxyGpuDirect, APutIsCompleteWhenItsDataIsThereAndShown) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  const std::uint64_t position = put(heap(0) + kSource);
  poll();
  EXPECT_FALSE(is_complete(0, position));
  network_.let_go();
  poll();
  EXPECT_TRUE(is_complete(0, position));
  EXPECT_TRUE(has_data(1));
  EXPECT_EQ(copiers_[1].shows, 1);
  EXPECT_EQ(copies(0) + copies(1), 0U);
}

TEST_F(ProxyGpuDirect, SmallThingsWaitForTheDataBeforeThem) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  put(heap(0) + kSource);
  at(0).thread().signal_add(at(0).word(64), 1, Pe(1));
  poll();
  EXPECT_EQ(apply(1), 0U);
  network_.let_go();
  poll();
  EXPECT_EQ(apply(1), 1U);
}

TEST_F(ProxyGpuDirect, DataOvertakesSmallThingsUnlessAFenceIsBetween) {
  start(2);
  GpuThread gpu = at(0).thread();
  gpu.signal_add(at(0).word(64), 1, Pe(1));
  put(heap(0) + kSource);
  poll();
  EXPECT_TRUE(has_data(1));
  gpu.fence();
  put(heap(0) + kSource, 2 * kDest);
  put(heap(0) + kSource, 3 * kDest);
  poll();
  EXPECT_FALSE(has_data(1, 2 * kDest));
  EXPECT_FALSE(has_data(1, 3 * kDest));
  EXPECT_EQ(apply(1), 1U);
  poll();
  EXPECT_TRUE(has_data(1, 2 * kDest));
  EXPECT_TRUE(has_data(1, 3 * kDest));
}

TEST_F(ProxyGpuDirect, AFenceBeforeASmallThingAlsoHoldsBackTheDataBehindIt) {
  start(2);
  GpuThread gpu = at(0).thread();
  gpu.signal_add(at(0).word(64), 1, Pe(1));
  gpu.fence();
  gpu.signal_add(at(0).word(72), 1, Pe(1));
  put(heap(0) + kSource);
  const std::uint64_t got = gpu.issue(get_command(heap(0) + 2 * kDest));
  poll();
  EXPECT_FALSE(has_data(1));
  EXPECT_FALSE(is_complete(0, got));
  EXPECT_EQ(apply(1), 2U);
  poll();
  EXPECT_TRUE(has_data(1));
  EXPECT_TRUE(is_complete(0, got));
}

TEST_F(ProxyGpuDirect, StagedDataBehindAFenceWaitsForDirectDataBeforeIt) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  const std::vector<std::byte> elsewhere(kBulk, kFill);
  put(heap(0) + kSource);
  at(0).thread().fence();
  put(elsewhere.data(), 2 * kDest);
  poll();
  EXPECT_EQ(copiers_[1].issued(CopyDirection::ToGpu), 0U);
  network_.let_go();
  poll();
  EXPECT_EQ(copiers_[1].issued(CopyDirection::ToGpu), 1U);
  EXPECT_TRUE(has_data(1, 2 * kDest));
}

TEST_F(ProxyGpuDirect, MemoryOutsideTheHeapIsStaged) {
  start(2);
  std::vector<std::byte> elsewhere(kBulk, kFill);
  const std::uint64_t position = put(elsewhere.data());
  poll();
  EXPECT_TRUE(is_complete(0, position));
  EXPECT_TRUE(has_data(1));
  EXPECT_EQ(copiers_[0].issued(CopyDirection::FromGpu), 1U);
  std::ranges::fill(elsewhere, std::byte{0});
  const std::uint64_t got = at(0).thread().issue(get_command(elsewhere.data()));
  poll();
  EXPECT_TRUE(is_complete(0, got));
  EXPECT_EQ(elsewhere, std::vector<std::byte>(kBulk, kFill));
  EXPECT_EQ(copiers_[0].issued(CopyDirection::ToGpu), 1U);
}

// As libweft registers a window: with all rails of this PE, and nowhere else.
TEST_F(ProxyGpuDirect, AWindowOutsideTheHeapIsSentFromWhereItLiesAndFilledWhereItLies) {
  start(2);
  std::vector<std::byte> elsewhere(2 * kBulk, kFill);
  const std::span<std::byte> window(elsewhere.data() + 8, 2 * kBulk - 16);
  const std::size_t before = network_.region_count();
  ASSERT_EQ(at(0).transport->register_device_memory({.memory = window}).front().way,
            fabric::DeviceWay::Interface);
  EXPECT_EQ(network_.region_count(), before + 1);
  const heap::Chunk entry{.offset = reinterpret_cast<std::uint64_t>(window.data()),
                          .bytes = window.size(),
                          .region = {}};
  at(0).windows.add(entry);
  const std::uint64_t position = put(window.data());
  poll();
  EXPECT_TRUE(is_complete(0, position));
  EXPECT_TRUE(has_data(1));
  std::ranges::fill(elsewhere, std::byte{0});
  const std::uint64_t got = at(0).thread().issue(get_command(window.data()));
  poll();
  EXPECT_TRUE(is_complete(0, got));
  EXPECT_TRUE(std::all_of(window.begin(), window.begin() + kBulk,
                          [](std::byte byte) { return byte == kFill; }));
  EXPECT_EQ(copies(0) + copies(1), 0U);
  // One byte before it, and after its end: memory like any other.
  put(window.data() - 1, 2 * kDest);
  put(window.data() + window.size() - kBulk + 1, 3 * kDest);
  poll();
  EXPECT_EQ(copiers_[0].issued(CopyDirection::FromGpu), 2U);
  at(0).windows.remove(entry.offset);
  at(0).transport->drop_device_region(window);
  EXPECT_EQ(network_.region_count(), before);
  put(window.data(), 4 * kDest);
  poll();
  EXPECT_EQ(copiers_[0].issued(CopyDirection::FromGpu), 3U);
}

TEST_F(ProxyGpuDirect, AWindowThatOneOfTwoRailsRefusesIsKeptByNone) {
  std::vector<std::byte> memory(kBulk);
  RailsTransport::Rails rails;
  rails.push_back(network_.make_rail("nic0"));
  rails.push_back(network_.make_rail("nic1", true, kBulk - 1));
  std::vector<std::byte> probe(64);
  RailsTransport transport({}, Pe(0), std::move(rails), {{probe.data(), probe.size()}}, 0);
  const std::size_t before = network_.region_count();
  const auto results = transport.register_device_memory({.memory = memory});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].nic, "nic1");
  EXPECT_EQ(results[1].why, "this rail has no room for it");
  EXPECT_EQ(network_.region_count(), before);
}

// Nobody polls the engine of PE 1: only its NIC is there.
TEST_F(ProxyGpuDirect, AGetNeedsNothingOfTheTargetsProxyAndIsShownBeforeItIsComplete) {
  start(2);
  const std::uint64_t got = at(0).thread().issue(get_command(heap(0) + kDest));
  for (int i = 0; i < 3000; ++i) {
    at(0).engine->poll();
    at(0).transport->progress();
    at(1).transport->progress();
  }
  EXPECT_TRUE(is_complete(0, got));
  EXPECT_TRUE(has_data(0));
  EXPECT_EQ(copiers_[0].shows, 1);
  EXPECT_EQ(copies(0) + copies(1), 0U);
}

// The transport has threads of its own.
TEST_F(ProxyGpuDirect, AGetThatArrivesWhileAnotherIsShownIsShownItself) {
  start(2);
  const auto progress = [this] {
    for (int i = 0; i < 3000; ++i) {
      at(0).transport->progress();
      at(1).transport->progress();
    }
  };
  const std::uint64_t late_bytes = kBulk - 8;
  const device::Command late = get_command(heap(0) + kDest + kBulk, kSource, late_bytes);
  network_.hold_reads(late_bytes);
  const std::uint64_t first = at(0).thread().issue(get_command(heap(0) + kDest));
  const std::uint64_t second = at(0).thread().issue(late);
  at(0).engine->poll();
  progress();
  ASSERT_EQ(network_.held(), 1U);
  copiers_[0].meanwhile = [&] {
    network_.let_go();
    progress();
  };
  for (int i = 0; i < 10 && !is_complete(0, second); ++i) {
    at(0).engine->poll();
  }
  EXPECT_TRUE(is_complete(0, first));
  EXPECT_TRUE(is_complete(0, second));
  EXPECT_EQ(copiers_[0].shows, 2);
}

TEST_F(ProxyGpuDirect, APairWithOneRailThatRefusesIsStagedAndOthersAreNot) {
  start(3, 1);
  EXPECT_FALSE(at(0).is_direct[1]);
  EXPECT_TRUE(at(0).is_direct[2]);
  EXPECT_FALSE(at(1).is_direct[0]);
  EXPECT_EQ(at(1).transport->device_rails().front().why, "this rail does not take it");
  put(heap(0) + kSource);
  poll();
  EXPECT_TRUE(has_data(1));
  EXPECT_EQ(copies(0) + copies(1), 2U);
  at(0).thread().put(heap(0) + kDest, heap(0) + kSource, kBulk, Pe(2));
  poll();
  EXPECT_TRUE(has_data(2));
  EXPECT_EQ(copies(0) + copies(2), 1U);
}

TEST_F(ProxyGpuDirect, NoMorePutsAreOnTheirWayThanThePeerCanTell) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  constexpr std::size_t kStep =
      1000;  // so that all fit below the source; the same bytes where they overlap
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < 2 * proxy::kGpuDirectWindow - 4; ++i) {
    last = put(heap(0) + kSource, kDest + i * kStep);
  }
  poll();
  EXPECT_EQ(network_.held(), proxy::kGpuDirectWindow);
  network_.let_go();
  poll(6000);
  EXPECT_TRUE(is_complete(0, last));
  EXPECT_TRUE(has_data(1, kDest + (2 * proxy::kGpuDirectWindow - 5) * kStep));
}

// A heap of 2 MiB that has grown by 1 MiB, which is region 3.
constexpr std::size_t kFirst = std::size_t{2} << 20U;
constexpr heap::Chunk kLate{
    .offset = kFirst, .bytes = std::size_t{1} << 20U, .region = RegionIndex(3)};

TEST_F(ProxyGpuDirect, BothSidesMayLieInAChunkThatTheHeapHasGrownBy) {
  start(2, ~0U, kFirst);
  pes_->grow(kLate);
  const std::uint64_t to_late = put(heap(0) + kSource, kFirst + kDest);
  poll();
  EXPECT_TRUE(is_complete(0, to_late));
  EXPECT_TRUE(has_data(1, kFirst + kDest));
  std::fill_n(heap(0) + kFirst, kBulk, kFill);
  const std::uint64_t from_late = put(heap(0) + kFirst, kDest);
  poll();
  EXPECT_TRUE(is_complete(0, from_late));
  EXPECT_TRUE(has_data(1, kDest));
  const device::Command get = get_command(heap(0) + kFirst + 2 * kDest, kFirst + kDest);
  const std::uint64_t got = at(0).thread().issue(get);
  poll();
  EXPECT_TRUE(is_complete(0, got));
  EXPECT_TRUE(has_data(0, kFirst + 2 * kDest));
  EXPECT_EQ(copies(0) + copies(1), 0U);
}

TEST_F(ProxyGpuDirect, APutAcrossTwoChunksIsStaged) {
  start(2, ~0U, kFirst);
  pes_->grow(kLate);
  const std::uint64_t across = put(heap(0) + kSource, kFirst - kBulk / 2);
  poll();
  EXPECT_TRUE(is_complete(0, across));
  EXPECT_TRUE(has_data(1, kFirst - kBulk / 2));
  EXPECT_EQ(copies(0) + copies(1), 2U);
  std::fill_n(heap(0) + kFirst - kBulk / 2, kBulk, kFill);
  const std::uint64_t from_across = put(heap(0) + kFirst - kBulk / 2, kDest);
  poll();
  EXPECT_TRUE(is_complete(0, from_across));
  EXPECT_TRUE(has_data(1, kDest));
  EXPECT_EQ(copies(0) + copies(1), 4U);
}

TEST_F(ProxyGpuDirect, WhatLiesInNoChunkIsRefusedBeforeAndAfterItWasMapped) {
  start(2, ~0U, kFirst);
  const std::uint64_t before = put(heap(0) + kSource, kFirst + kDest);
  poll();
  EXPECT_TRUE(is_complete(0, before));
  EXPECT_EQ(at(0).failures.count(Pe(1), Status::InvalidArgument), 1U);
  pes_->grow(kLate);
  put(heap(0) + kSource, kFirst + kDest);
  poll();
  EXPECT_TRUE(has_data(1, kFirst + kDest));
  EXPECT_EQ(at(0).failures.count(Pe(1), Status::InvalidArgument), 1U);
  at(0).chunks.remove(kLate.offset);
  put(heap(0) + kSource, kFirst + kDest);
  put(heap(0) + kSource, kFirst - kBulk / 2);
  poll();
  EXPECT_EQ(at(0).failures.count(Pe(1), Status::InvalidArgument), 3U);
}

TEST_F(ProxyGpuDirect, SmallOperationsReachLateChunksThroughTheInbox) {
  start(2, ~0U, kFirst);
  pes_->grow(kLate);
  at(0).thread().signal_add(at(0).word(kFirst + 64), 7, Pe(1));
  poll();
  EXPECT_EQ(apply(1), 1U);
  EXPECT_EQ(*at(1).word(kFirst + 64), 7U);
}

TEST_F(ProxyGpuDirect, WhatGoesToALostPeerCompletesAsFailed) {
  start(2);
  network_.hold_writes(1, kHeapKey);
  GpuThread gpu = at(0).thread();
  put(heap(0) + kSource);
  poll(50);
  network_.kill(1);
  gpu.put_signal(heap(0) + kDest, heap(0) + kSource, kBulk, at(0).word(64), 1, Pe(1));
  const std::uint64_t got = gpu.issue(get_command(heap(0) + kDest));
  const std::uint64_t give_up_ns = now_ns() + 10'000'000'000;
  while (!is_complete(0, got) && now_ns() < give_up_ns) {
    pes_->poll_all();
  }
  ASSERT_TRUE(is_complete(0, got));
  EXPECT_GE(at(0).failures.count(Pe(1), Status::PeerLost), 3U);
}

}  // namespace
}  // namespace weft::test
