// Which kind of handle the PEs of a job end up with, when some of them refuse some kinds. GPUs are
// host memory.
#include "src/runtime/device/heap_sharing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/bootstrap/in_process.hpp"
#include "tests/support/fake_segments.hpp"

namespace weft::runtime {
namespace {

using gpu::HandleKind;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint32_t kPes = 3;

// A kind that one PE refuses, and when.
struct Refusal {
  std::uint32_t pe = 0;
  HandleKind kind = HandleKind::Descriptor;
  Status status = Status::Internal;
  bool at_map = true;
};

HandleKind kind_of(const gpu::SegmentPlan& plan) {
  if (plan.kind == gpu::MemoryKind::Ipc) {
    return HandleKind::Ipc;
  }
  return plan.may_use_fabric ? HandleKind::Fabric : HandleKind::Descriptor;
}

class KindSegments final : public gpu::Segments {
 public:
  KindSegments(const gpu::SegmentPlan& plan, const Refusal* refusal)
      : memory_(plan), kind_(kind_of(plan)), refusal_(refusal) {
    if (refuses(false)) {
      fail(refusal_->status, "the fake GPU has no such memory");
    }
  }

  [[nodiscard]] std::byte* base() const override { return memory_.base(); }

  [[nodiscard]] std::uint64_t size() const override { return memory_.size(); }

  [[nodiscard]] std::uint64_t stride() const override { return memory_.stride(); }

  [[nodiscard]] std::uint64_t reserved() const override { return memory_.reserved(); }

  [[nodiscard]] gpu::DeviceSegmentOffer offer() const override {
    gpu::DeviceSegmentOffer offer = memory_.offer();
    offer.kind = kind_;
    return offer;
  }

  std::byte* map(std::uint32_t slot,
                 const gpu::DeviceSegmentOffer& offer,
                 std::string_view whose) override {
    if (refuses(true)) {
      fail(refusal_->status, "the fake GPU does not map {}", whose);
    }
    return memory_.map(slot, offer, whose);
  }

  void close_offer() override { memory_.close_offer(); }

  gpu::DeviceSegmentOffer add_part(const gpu::SegmentPart& part) override {
    return memory_.add_part(part);
  }

  gpu::DeviceSegmentOffer adopt_part(const gpu::SegmentPart& part, std::byte* memory) override {
    return memory_.adopt_part(part, memory);
  }

  void map_part(std::uint32_t slot,
                const gpu::SegmentPart& part,
                const gpu::DeviceSegmentOffer& offer,
                std::string_view whose) override {
    memory_.map_part(slot, part, offer, whose);
  }

  void drop_part(const gpu::SegmentPart& part) noexcept override { memory_.drop_part(part); }

 private:
  [[nodiscard]] bool refuses(bool at_map) const {
    return refusal_ != nullptr && refusal_->kind == kind_ && refusal_->at_map == at_map;
  }

  test::FakeSegments memory_;
  HandleKind kind_;
  const Refusal* refusal_;
};

// What became of each PE.
struct Outcome {
  std::string error;
  HandleKind kind = HandleKind::Fabric;
  std::uint32_t mapped = 0;  // peers
  std::uint32_t tries = 0;
};

class HeapSharings : public ::testing::Test {
 protected:
  HeapSharings() {
    config_.device_heap_size = std::uint64_t{2} << 20U;
    config_.device_heap_max = std::uint64_t{16} << 20U;
    for (std::uint32_t pe = 0; pe < kPes; ++pe) {
      devices_[pe].uuid[0] = static_cast<std::uint8_t>(1 + pe);
      devices_[pe].pci = "0000:0" + std::to_string(1 + pe) + ":00.0";
      devices_[pe].has_posix_handles = true;
      devices_[pe].bytes = std::uint64_t{1} << 30U;
    }
  }

  std::vector<Outcome> share() {
    bootstrap::InProcessGroup group(kPes);
    std::vector<Outcome> outcomes(kPes);
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t pe = 0; pe < kPes; ++pe) {
        threads.emplace_back([&, pe] { outcomes[pe] = share_as(pe, *group.take(Pe(pe))); });
      }
    }
    return outcomes;
  }

  Config config_ = load_config([](std::string_view) { return std::nullopt; });
  std::array<gpu::Device, kPes> devices_;
  std::vector<Refusal> refusals_;
  std::string without_atomics_;  // the PCI address of a GPU whose link carries none

 private:
  Outcome share_as(std::uint32_t pe, bootstrap::Bootstrap& bootstrap) {
    Outcome outcome;
    const HeapSharing with{
        .config = config_,
        .bootstrap = bootstrap,
        .slots = {0, 1, 2},
        .make_segments =
            [&](const gpu::Device&, const gpu::SegmentPlan& plan) {
              ++outcome.tries;
              outcome.kind = kind_of(plan);
              return std::make_unique<KindSegments>(plan, refusal_of(pe, kind_of(plan)));
            },
        .have_atomics =
            [&](const gpu::Device& from, std::span<const std::string> peers) {
              std::vector<bool> found;
              for (const std::string& pci : peers) {
                found.push_back(from.pci != without_atomics_ && pci != without_atomics_);
              }
              return found;
            }};
    try {
      const SharedHeap shared =
          share_heaps(with, [&]() -> const gpu::Device& { return devices_[pe]; });
      for (std::uint32_t other = 0; other < kPes; ++other) {
        outcome.mapped += shared.heap->mapped_base(Pe(other)) != nullptr ? 1 : 0;
      }
      bootstrap.barrier();
    } catch (const Error& error) {
      outcome.error = error.what();
    }
    return outcome;
  }

  const Refusal* refusal_of(std::uint32_t pe, HandleKind kind) const {
    for (const Refusal& refusal : refusals_) {
      if (refusal.pe == pe && refusal.kind == kind) {
        return &refusal;
      }
    }
    return nullptr;
  }
};

template <typename Member>
auto each(const std::vector<Outcome>& outcomes, Member member) {
  std::vector<std::decay_t<decltype(outcomes[0].*member)>> values;
  for (const Outcome& outcome : outcomes) {
    values.push_back(outcome.*member);
  }
  return values;
}

TEST_F(HeapSharings, TheFirstKindThatServesAllIsTaken) {
  const auto outcomes = share();
  EXPECT_THAT(each(outcomes, &Outcome::error), Each(""));
  EXPECT_THAT(each(outcomes, &Outcome::kind), Each(HandleKind::Fabric));
  EXPECT_THAT(each(outcomes, &Outcome::mapped), Each(kPes));
  EXPECT_THAT(each(outcomes, &Outcome::tries), Each(1U));
}

TEST_F(HeapSharings, AGpuBehindALinkWithoutAtomicsIsNamedByAllThatMapIt) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(each(share(), &Outcome::error), Each(""));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  without_atomics_ = devices_[2].pci;
  testing::internal::CaptureStderr();
  const auto outcomes = share();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(each(outcomes, &Outcome::mapped), Each(kPes));
  EXPECT_THAT(said, HasSubstr("(0000:01:00.0) reaches the memory of PE 2 over PCIe"));
  EXPECT_THAT(said, HasSubstr("(0000:02:00.0) reaches the memory of PE 2 over PCIe"));
  EXPECT_THAT(said, HasSubstr("(0000:03:00.0) reaches the memory of PE 0, 1 over PCIe"));
  EXPECT_THAT(said, HasSubstr("WEFT_NODE_SIZE=1"));
}

TEST_F(HeapSharings, AFabricThatDoesNotReachGivesWayToDescriptors) {
  refusals_ = {{.pe = 2, .kind = HandleKind::Fabric}};
  const auto outcomes = share();
  EXPECT_THAT(each(outcomes, &Outcome::error), Each(""));
  EXPECT_THAT(each(outcomes, &Outcome::kind), Each(HandleKind::Descriptor));
  EXPECT_THAT(each(outcomes, &Outcome::mapped), Each(kPes));
}

TEST_F(HeapSharings, DescriptorsThatOnePeMayNotTakeGiveWayToIpcHandlesOfAll) {
  refusals_ = {{.pe = 0, .kind = HandleKind::Fabric, .at_map = false},
               {.pe = 1, .kind = HandleKind::Descriptor}};
  const auto outcomes = share();
  EXPECT_THAT(each(outcomes, &Outcome::error), Each(""));
  EXPECT_THAT(each(outcomes, &Outcome::kind), Each(HandleKind::Ipc));
  EXPECT_THAT(each(outcomes, &Outcome::tries), Each(3U));
}

TEST_F(HeapSharings, AGpuThatHasOnlyIpcHandlesDecidesForAll) {
  devices_[1].has_posix_handles = false;
  EXPECT_THAT(each(share(), &Outcome::kind), Each(HandleKind::Ipc));
}

TEST_F(HeapSharings, WhereTheSettingForbidsTheNextKindAllPesSayWhy) {
  config_.device_memory = "vmm";
  refusals_ = {{.pe = 1, .kind = HandleKind::Fabric}, {.pe = 1, .kind = HandleKind::Descriptor}};
  const auto outcomes = share();
  EXPECT_THAT(each(outcomes, &Outcome::error), Each(HasSubstr("the fake GPU does not map PE 0")));
  EXPECT_THAT(outcomes[0].error, HasSubstr("PE 1: "));
}

TEST_F(HeapSharings, AFullGpuIsNoReasonToTryAnotherKind) {
  refusals_ = {
      {.pe = 0, .kind = HandleKind::Fabric, .status = Status::OutOfMemory, .at_map = false}};
  const auto outcomes = share();
  EXPECT_THAT(each(outcomes, &Outcome::error), Each(HasSubstr("no such memory")));
  EXPECT_THAT(each(outcomes, &Outcome::tries), Each(1U));
}

TEST_F(HeapSharings, OneGpuForTwoPesIsRefusedOnAll) {
  devices_[2].uuid = devices_[0].uuid;
  const auto outcomes = share();
  EXPECT_THAT(each(outcomes, &Outcome::error), Each(HasSubstr("has taken this PE's GPU")));
  EXPECT_THAT(each(outcomes, &Outcome::tries), Each(1U));
}

}  // namespace
}  // namespace weft::runtime
