// PEs agree which of them reach each other's GPU memory by NICs, and on what to say if one must and
// cannot.
#include "src/runtime/device/gpu_direct.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/bootstrap/in_process.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using runtime::GpuDirectHeap;
using runtime::GpuDirectOffer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What became of one PE: its heap, or the sentence of the error.
struct Outcome {
  GpuDirectHeap heap;
  std::string error;
};

struct PePlan {
  std::string mode = "auto";
  std::string refusal;       // of its GPU
  bool second_takes = true;  // whether its second rail takes GPU memory
};

std::vector<Outcome> connect(const std::vector<PePlan>& plans) {
  const auto count = static_cast<std::uint32_t>(plans.size());
  SimulatedNetwork network(41, {});
  const auto pes = make_rails_pes(count, 4096, {}, [&](std::uint32_t pe) {
    transport::rails::RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic0"));
    rails.push_back(network.make_rail("nic1", plans[pe].second_takes));
    return rails;
  });
  bootstrap::InProcessGroup group(count);
  std::vector<Outcome> outcomes(count);
  std::vector<std::jthread> threads;
  for (std::uint32_t pe = 0; pe < count; ++pe) {
    threads.emplace_back([&, pe] {
      const auto bootstrap = group.take(Pe(pe));
      std::vector<std::byte> memory(4096);
      const GpuDirectOffer offer{.memory = {.memory = memory},
                                 .pages = {},
                                 .refusal = plans[pe].mode == "off" ? "off" : plans[pe].refusal};
      try {
        outcomes[pe].heap = runtime::connect_device_heap(*pes[pe]->transport, *bootstrap,
                                                         RegionIndex(1), plans[pe].mode, offer);
      } catch (const Error& error) {
        outcomes[pe].error = error.what();
      }
    });
  }
  threads.clear();
  return outcomes;
}

TEST(GpuDirect, AllPairsAreDirectWhereAllRailsTakeTheHeap) {
  const auto outcomes = connect({{}, {.mode = "on"}, {}});
  EXPECT_THAT(outcomes[0].heap.peers, ElementsAre(false, true, true));
  EXPECT_THAT(outcomes[1].heap.peers, ElementsAre(true, false, true));
  EXPECT_TRUE(outcomes[2].heap.is_used);
  EXPECT_TRUE(outcomes[2].heap.is_registered());
  EXPECT_EQ(runtime::describe(outcomes[0].heap.rails[1]),
            "nic1: interface (this rail takes anything)");
}

TEST(GpuDirect, ARailThatRefusesAPeThatIsOffAndAGpuThatCannotAreStagedOnBothSides) {
  const auto outcomes = connect(
      {{}, {.second_takes = false}, {.mode = "off"}, {.refusal = "the GPU lets no NIC in"}, {}});
  EXPECT_THAT(outcomes[0].heap.peers, ElementsAre(false, false, false, false, true));
  EXPECT_THAT(outcomes[1].heap.peers, ElementsAre(false, false, false, false, false));
  EXPECT_THAT(outcomes[4].heap.peers, ElementsAre(true, false, false, false, false));
  EXPECT_EQ(outcomes[1].heap.rails[0].way, fabric::DeviceWay::Interface);
  EXPECT_TRUE(outcomes[1].heap.is_used);
  EXPECT_FALSE(outcomes[1].heap.is_registered());
  EXPECT_EQ(outcomes[1].heap.rails[1].why, "this rail does not take it");
  EXPECT_EQ(outcomes[3].heap.refusal, "the GPU lets no NIC in");
}

// The heap grows by 8192 bytes as region 2, then by 4096 as region 3. Returns what each PE said to
// both.
std::vector<std::array<std::string, 2>> grow(const std::vector<std::size_t>& device_bytes_max) {
  const auto count = static_cast<std::uint32_t>(device_bytes_max.size());
  SimulatedNetwork network(43, {});
  const auto pes = make_rails_pes(count, 4096, {}, [&](std::uint32_t pe) {
    transport::rails::RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic0"));
    rails.push_back(network.make_rail("nic1", true, device_bytes_max[pe]));
    return rails;
  });
  bootstrap::InProcessGroup group(count);
  std::vector<std::array<std::string, 2>> errors(count);
  std::vector<std::jthread> threads;
  for (std::uint32_t pe = 0; pe < count; ++pe) {
    threads.emplace_back([&, pe] {
      const auto bootstrap = group.take(Pe(pe));
      std::vector<std::byte> memory(16384);
      const GpuDirectOffer offer{
          .memory = {.memory = std::span(memory).first(4096)}, .pages = {}, .refusal = ""};
      const GpuDirectHeap heap = runtime::connect_device_heap(*pes[pe]->transport, *bootstrap,
                                                              RegionIndex(1), "auto", offer);
      for (std::uint32_t i = 0; i < 2; ++i) {
        const auto chunk = std::span(memory).subspan(4096, i == 0 ? 8192 : 4096);
        try {
          runtime::connect_device_chunk(*pes[pe]->transport, *bootstrap,
                                        {.region = RegionIndex(2 + i),
                                         .memory = {.memory = chunk},
                                         .is_offered = heap.is_registered()});
          runtime::disconnect_device_chunk(*pes[pe]->transport, RegionIndex(2 + i), chunk);
        } catch (const Error& error) {
          errors[pe].at(i) = error.what();
        }
      }
    });
  }
  threads.clear();
  return errors;
}

TEST(GpuDirect, AChunkThatOneRailDoesNotRegisterIsRefusedOnAllPesWithTheRailAndTheAmount) {
  const auto errors = grow({SIZE_MAX, 4096, SIZE_MAX});
  EXPECT_EQ(errors[0][0],
            "the NICs of PE 1 do not register 8 KiB more of its device heap: rail nic1: this rail "
            "has no room for it");
  EXPECT_EQ(errors[1][0], errors[0][0]);
  EXPECT_EQ(errors[2][0], errors[0][0]);
  EXPECT_THAT(errors, ::testing::Each(::testing::Contains("")));
}

TEST(GpuDirect, APeWhoseRailsDoNotReachItsGpuRefusesNoChunk) {
  const auto errors = grow({SIZE_MAX, 0, 8192});
  EXPECT_THAT(errors, ::testing::Each(ElementsAre("", "")));
}

TEST(GpuDirect, NoPeUsesItWhereNoPeIsRegistered) {
  const auto outcomes = connect({{.second_takes = false}, {.mode = "off"}});
  EXPECT_FALSE(outcomes[0].heap.is_used);
  EXPECT_FALSE(outcomes[1].heap.is_used);
}

TEST(GpuDirect, WhoInsistsGetsOneSentenceOnAllPesWithThePeTheRailAndTheReason) {
  const auto outcomes = connect({{}, {.second_takes = false}, {.mode = "on"}});
  EXPECT_EQ(outcomes[0].error,
            "WEFT_DEVICE_DIRECT=on (PE 2), but the NICs of PE 1 do not reach its GPU: rail nic1: "
            "this rail does not take it; set auto, and such PEs are staged");
  EXPECT_EQ(outcomes[1].error, outcomes[0].error);
  EXPECT_EQ(outcomes[2].error, outcomes[0].error);
}

}  // namespace
}  // namespace weft::test
