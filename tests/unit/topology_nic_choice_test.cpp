// The choice of a PE's NICs: on the shapes of real machines, and exhaustively for sharing out.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tests/unit/topology_fixtures.hpp"

namespace weft::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NicChoice choose(const Machine& machine,
                 const std::vector<NicCandidate>& candidates,
                 const std::vector<PePlace>& places,
                 std::uint32_t pe,
                 const NicLimits& limits = {}) {
  return choose_nics(machine, {candidates, places, pe, limits});
}

std::string message_of(const NicLimits& limits, const std::vector<NicCandidate>& candidates) {
  try {
    static_cast<void>(choose({}, candidates, {PePlace{}}, 0, limits));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

NicLimits including(std::vector<std::string> names) {
  NicLimits limits;
  limits.include = std::move(names);
  return limits;
}

NicLimits at_most(std::uint32_t rail_count) {
  NicLimits limits;
  limits.rail_count_max = rail_count;
  return limits;
}

TEST(NicChoice, EightPesOfP5GetTheFourNicsBesideTheirGpu) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const auto places = one_gpu_each(machine);
  for (std::uint32_t pe = 0; pe < 8; ++pe) {
    const NicChoice choice = choose(machine, nics, places, pe);
    const std::size_t first = 4 * std::size_t{pe};
    EXPECT_THAT(choice.chosen, ElementsAre(first, first + 1, first + 2, first + 3));
    for (const std::size_t nic : choice.chosen) {
      EXPECT_EQ(choice.verdicts[nic].distance, Distance::SameSwitch);
      EXPECT_THAT(choice.verdicts[nic].reason, HasSubstr("same PCI switch as this PE's GPU"));
    }
  }
  EXPECT_THAT(names_of(nics, choose(machine, nics, places, 7)),
              ElementsAre("rdmap198s0", "rdmap199s0", "rdmap200s0", "rdmap201s0"));
}

TEST(NicChoice, P5GpusInAnyOrderKeepTheirOwnNics) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  auto places = one_gpu_each(machine);
  std::ranges::reverse(places);
  EXPECT_THAT(choose(machine, nics, places, 0).chosen, ElementsAre(28, 29, 30, 31));
}

TEST(NicChoice, SixteenPesOnEightGpusGetTwoNicsEach) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const auto places = assumed_places(machine, 16);
  for (std::uint32_t pe = 0; pe < 16; ++pe) {
    EXPECT_THAT(choose(machine, nics, places, pe).chosen, ElementsAre(2 * pe, 2 * pe + 1));
  }
}

TEST(NicChoice, OnePeWithAGpuTakesOnlyTheNicsBehindItsSwitch) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const NicChoice choice = choose(machine, nics, {PePlace{machine.gpus[1].pci, {}}}, 0);
  EXPECT_THAT(choice.chosen, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(choice.verdicts[0].reason, HasSubstr("WEFT_NICS_SHARED"));
}

TEST(NicChoice, OnePeWithoutAGpuTakesAllThirtyTwo) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  EXPECT_EQ(choose(machine, nics, {PePlace{}}, 0).chosen.size(), 32U);
  EXPECT_EQ(choose(machine, nics, on_numa_nodes({1}), 0).chosen.size(), 32U);
}

// Each PE computes alone, from what all have told: two on one machine whose GPUs are at its two
// ends.
TEST(NicChoice, AGpuCountsMoreThanTheCores) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const std::vector<PePlace> places{{machine.gpus[7].pci, 0}, {machine.gpus[0].pci, 1}};
  EXPECT_THAT(choose(machine, nics, places, 0).chosen, ElementsAre(28, 29, 30, 31));
  EXPECT_THAT(choose(machine, nics, places, 1).chosen, ElementsAre(0, 1, 2, 3));
}

TEST(NicChoice, PesBoundToSocketsShareOutTheNicsOfTheirSocket) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const auto places = on_numa_nodes({1, 0, 1, 0});
  const std::vector<std::size_t> firsts{16, 0, 24, 8};
  for (std::uint32_t pe = 0; pe < 4; ++pe) {
    const NicChoice choice = choose(machine, nics, places, pe);
    ASSERT_EQ(choice.chosen.size(), 8U);
    EXPECT_EQ(choice.chosen.front(), firsts[pe]);
    EXPECT_EQ(choice.chosen.back(), firsts[pe] + 7);
    EXPECT_THAT(choice.verdicts[firsts[pe]].reason, HasSubstr("same NUMA node as this PE's cores"));
  }
}

TEST(NicChoice, PesCrowdedOnOneSocketStillUseTheNicsOfTheOther) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const auto places = on_numa_nodes({0, 0});
  EXPECT_EQ(choose(machine, nics, places, 0).chosen.size(), 16U);
  EXPECT_THAT(choose(machine, nics, places, 1).verdicts[24].reason, HasSubstr("other NUMA node"));
}

TEST(NicChoice, GraceHopperPesGetTheirModulesNicByItsPciAddress) {
  const Machine machine = fixture("gh200_slingshot");
  auto nics = candidates_of(machine, NicKind::Net);
  for (std::size_t i = 0; i < nics.size(); ++i) {
    nics[i].name = fmt::format("cxi{}", i);  // libfabric's names, which hwloc does not know
  }
  for (std::uint32_t pe = 0; pe < 4; ++pe) {
    EXPECT_THAT(choose(machine, nics, one_gpu_each(machine), pe).chosen, ElementsAre(pe));
  }
  EXPECT_EQ(choose(machine, nics, {PePlace{machine.gpus[0].pci, {}}}, 0).chosen.size(), 4U);
}

TEST(NicChoice, DgxPesGetTheNicBesideTheirGpuAndLeaveTheStorageNicsAlone) {
  const Machine machine = fixture("dgx_h100");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const std::vector<std::string> expected{"mlx5_0", "mlx5_3", "mlx5_4",  "mlx5_5",
                                          "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"};
  for (std::uint32_t pe = 0; pe < 8; ++pe) {
    EXPECT_THAT(names_of(nics, choose(machine, nics, one_gpu_each(machine), pe)),
                ElementsAre(expected[pe]));
  }
}

TEST(NicChoice, DgxStorageNicsAreSharedOutWhenNamed) {
  const Machine machine = fixture("dgx_h100");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const NicLimits limits = including({"mlx5_1", "mlx5_2", "mlx5_7", "mlx5_8"});
  const std::vector<std::string> expected{"mlx5_1", "mlx5_1", "mlx5_2", "mlx5_2",
                                          "mlx5_7", "mlx5_7", "mlx5_8", "mlx5_8"};
  for (std::uint32_t pe = 0; pe < 8; ++pe) {
    EXPECT_THAT(names_of(nics, choose(machine, nics, one_gpu_each(machine), pe, limits)),
                ElementsAre(expected[pe]));
  }
}

TEST(NicChoice, AllPesOfATwoSocketBoxShareItsOneNic) {
  const Machine machine = fixture("two_socket_ethernet");
  const std::vector<NicCandidate> nics{{"eno1", "192.168.1.5", {}, 10'000'000'000, true, false}};
  for (std::uint32_t pe = 0; pe < 4; ++pe) {
    const NicChoice choice = choose(machine, nics, on_numa_nodes({0, 0, 1, 1}), pe);
    EXPECT_THAT(choice.chosen, ElementsAre(0));
    // The candidate has no PCI address; the machine knows it by name.
    EXPECT_EQ(choice.verdicts[0].distance, pe < 2 ? Distance::SameNuma : Distance::OtherNuma);
  }
}

TEST(NicChoice, SixteenEqualNicsAndFourPesMakeBlocksOfFour) {
  const auto nics = virtual_nics(16);
  const std::vector<PePlace> places(4);
  for (std::uint32_t pe = 0; pe < 4; ++pe) {
    EXPECT_THAT(choose({}, nics, places, pe).chosen,
                ElementsAre(4 * pe, 4 * pe + 1, 4 * pe + 2, 4 * pe + 3));
  }
  EXPECT_THAT(choose({}, nics, places, 1).verdicts[12].reason, HasSubstr("goes to PE 3"));
}

TEST(NicChoice, SharingOutIsEvenContiguousDisjointAndCompleteForAllSmallCounts) {
  for (std::size_t nics = 0; nics <= 33; ++nics) {
    for (std::size_t pes = 1; pes <= 9; ++pes) {
      std::vector<int> users(nics, 0);
      std::size_t smallest = nics;
      std::size_t largest = 0;
      std::size_t previous_end = 0;
      for (std::size_t pe = 0; pe < pes; ++pe) {
        const Share share = share_of(nics, {pe, pes});
        ASSERT_LE(share.end, nics);
        for (std::size_t i = share.begin; i < share.end; ++i) {
          ++users[i];
        }
        if (pes <= nics) {
          ASSERT_EQ(share.begin, previous_end) << nics << " NICs, " << pes << " PEs";
        } else {
          ASSERT_EQ(share.end - share.begin, nics == 0 ? 0U : 1U);
        }
        previous_end = share.end;
        smallest = std::min(smallest, share.end - share.begin);
        largest = std::max(largest, share.end - share.begin);
      }
      ASSERT_LE(largest - smallest, 1U);
      if (!users.empty()) {
        const auto [least, most] = std::ranges::minmax(users);
        ASSERT_GE(least, 1) << "a NIC is left unused";
        ASSERT_LE(most, pes <= nics ? 1 : static_cast<int>((pes + nics - 1) / nics));
      }
    }
  }
}

TEST(NicChoice, EqualNicsAreSharedOutAsTheRuleSaysForAllSmallCounts) {
  for (std::size_t count = 0; count <= 33; ++count) {
    const auto nics = virtual_nics(count);
    for (std::uint32_t pes = 1; pes <= 9; ++pes) {
      const std::vector<PePlace> places(pes);
      for (std::uint32_t pe = 0; pe < pes; ++pe) {
        const Share share = share_of(count, {pe, pes});
        std::vector<std::size_t> expected(std::min(share.end - share.begin, kRailCountMax));
        std::iota(expected.begin(), expected.end(), share.begin);
        const NicChoice choice = choose({}, nics, places, pe);
        ASSERT_EQ(choice.chosen, expected) << count << " NICs, PE " << pe << " of " << pes;
        ASSERT_EQ(choice.verdicts.size(), count);
        ASSERT_EQ(choice.chosen, choose({}, nics, places, pe).chosen);
      }
    }
  }
}

TEST(NicChoice, NeverOpensMoreThanTheLimitAndKeepsTheNearest) {
  const Machine machine = fixture("p5_48xlarge");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const NicChoice choice = choose(machine, nics, on_numa_nodes({1}), 0, at_most(3));
  EXPECT_THAT(choice.chosen, ElementsAre(16, 17, 18));
  EXPECT_THAT(choice.verdicts[19].reason, HasSubstr("WEFT_RAIL_COUNT_MAX=3"));
  EXPECT_FALSE(choice.verdicts[19].chosen);
  EXPECT_EQ(choose({}, virtual_nics(40), {PePlace{}}, 0).chosen.size(), kRailCountMax);
}

TEST(NicChoice, SharedNicsAreOpenedByEveryPe) {
  NicLimits limits;
  limits.nics_shared = true;
  const NicChoice choice = choose({}, virtual_nics(4), std::vector<PePlace>(2), 1, limits);
  EXPECT_THAT(choice.chosen, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(choice.verdicts[0].reason, HasSubstr("shared by 2 PEs"));
}

TEST(NicChoice, NamesAndAddressesOfWeftNicsAreTakenAndTheOthersAreNot) {
  const NicChoice choice =
      choose({}, virtual_nics(4), {PePlace{}}, 0, including({"nic2", "10.0.0.0"}));
  EXPECT_THAT(choice.chosen, ElementsAre(0, 2));
  EXPECT_EQ(choice.verdicts[1].reason, "not named in WEFT_NICS");
}

TEST(NicChoice, NameThatDoesNotExistIsAnErrorThatListsThoseThatDo) {
  EXPECT_THAT(message_of(including({"eth9"}), virtual_nics(2)),
              testing::AllOf(HasSubstr("WEFT_NICS=eth9"), HasSubstr("nic0 (10.0.0.0), nic1")));
  EXPECT_THAT(message_of(including({"eth9"}), {}), HasSubstr("none"));
}

TEST(NicChoice, LimitOutOfRangeIsAnError) {
  EXPECT_THAT(message_of(at_most(0), virtual_nics(1)), HasSubstr("use 1 to 32"));
  EXPECT_THAT(message_of(at_most(33), virtual_nics(1)), HasSubstr("use 1 to 32"));
}

TEST(NicChoice, DownNicsAreLeftOutAndTheOthersSharedOutWithoutThem) {
  auto nics = virtual_nics(5);
  nics[1].up = false;
  const std::vector<PePlace> places(2);
  EXPECT_THAT(choose({}, nics, places, 0).chosen, ElementsAre(0, 2));
  EXPECT_THAT(choose({}, nics, places, 1).chosen, ElementsAre(3, 4));
  EXPECT_EQ(choose({}, nics, places, 0).verdicts[1].reason, "down");
}

TEST(NicChoice, LoopbackIsUsedOnlyWhenNamedOrAlone) {
  auto nics = virtual_nics(2);
  nics[0].loopback = true;
  nics[0].name = "lo";
  EXPECT_THAT(choose({}, nics, {PePlace{}}, 0).chosen, ElementsAre(1));
  EXPECT_THAT(choose({}, nics, {PePlace{}}, 0).verdicts[0].reason, HasSubstr("loopback"));
  EXPECT_THAT(choose({}, nics, {PePlace{}}, 0, including({"lo"})).chosen, ElementsAre(0));
  nics[1].up = false;
  EXPECT_THAT(choose({}, nics, {PePlace{}}, 0).chosen, ElementsAre(0));
}

TEST(NicChoice, BridgeToContainersIsUsedOnlyWhenNamedOrAlone) {
  Machine machine;
  machine.nics.push_back({"docker0", NicKind::Internal});
  std::vector<NicCandidate> nics{{"docker0", "172.17.0.1"}, {"eth0", "10.0.0.1"}};
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).chosen, ElementsAre(1));
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).verdicts[0].reason, HasSubstr("bridge"));
  nics.pop_back();
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).chosen, ElementsAre(0));
}

TEST(NicChoice, BridgeOverANicGoesBeforeBridgesToContainers) {
  Machine machine;
  machine.nics.push_back({"docker0", NicKind::Internal});
  machine.nics.push_back({"br0", NicKind::Bridge});
  machine.nics.push_back({"virbr0", NicKind::Internal});
  std::vector<NicCandidate> nics{
      {"docker0", "172.17.0.1"}, {"br0", "10.77.0.1"}, {"virbr0", "192.168.122.1"}};
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).chosen, ElementsAre(1));
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0, including({"virbr0"})).chosen, ElementsAre(2));
  nics.push_back({"eth0", "10.0.0.1"});
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).chosen, ElementsAre(3));
}

TEST(NicChoice, AddressOnLoopbackThatOthersReachGoesBeforeBridgesToContainers) {
  Machine machine;
  machine.nics.push_back({"lo", NicKind::Loopback});
  machine.nics.push_back({"docker0", NicKind::Internal});
  std::vector<NicCandidate> nics{
      {"docker0", "172.17.0.1"}, {"lo", "127.0.0.1"}, {"lo", "10.200.0.1"}};
  nics[1].loopback = true;
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).chosen, ElementsAre(2));
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).verdicts[1].reason, HasSubstr("loopback"));
  nics.push_back({"eth0", "10.0.0.1"});
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0).chosen, ElementsAre(3));
  EXPECT_THAT(choose(machine, nics, {PePlace{}}, 0, including({"10.200.0.1"})).chosen,
              ElementsAre(2));
}

TEST(NicChoice, NetworksNameTheNicsThatHaveAnAddressInThem) {
  std::vector<NicCandidate> nics{
      {"eth0", "10.200.0.1"}, {"eth1", "10.201.0.1"}, {"eth2", "10.200.0.2"}};
  EXPECT_THAT(choose({}, nics, {PePlace{}}, 0, including({"10.200.0.0/24"})).chosen,
              ElementsAre(0, 2));
  EXPECT_THAT(choose({}, nics, {PePlace{}}, 0, including({"10.200.0.0/24", "eth1"})).chosen,
              ElementsAre(0, 1, 2));
  EXPECT_THAT(message_of(including({"10.202.0.0/24"}), nics),
              HasSubstr("WEFT_NICS=10.202.0.0/24: no NIC, address or network '10.202.0.0/24' here; "
                        "there are: eth0 (10.200.0.1)"));
}

TEST(NicChoice, WithoutAnyUsableNicNothingIsChosenAndTheReasonIsSaid) {
  auto nics = virtual_nics(1);
  nics[0].up = false;
  const NicChoice choice = choose({}, nics, {PePlace{}}, 0);
  EXPECT_TRUE(choice.chosen.empty());
  EXPECT_EQ(explain(nics, choice), "nic0 (10.0.0.0): down");
}

TEST(NicChoice, LimitsComeFromTheConfiguration) {
  Config config;
  config.nics = "eth0, 10.0.0.2,,";
  config.nics_shared = true;
  config.rail_count_max = 4;
  const NicLimits limits = nic_limits(config);
  EXPECT_THAT(limits.include, ElementsAre("eth0", "10.0.0.2"));
  EXPECT_TRUE(limits.nics_shared);
  EXPECT_EQ(limits.rail_count_max, 4U);
  config.rail_count_max = 0;
  EXPECT_THROW(static_cast<void>(nic_limits(config)), Error);
}

// Every PE computes alone; put together, the choices must fit.
TEST(NicChoice, OnEveryFixtureEveryPeHasANicAndNoneIsLeftWithoutNeed) {
  for (const char* name : {"p5_48xlarge", "gh200_slingshot", "two_socket_ethernet", "laptop"}) {
    const Machine machine = fixture(name);
    auto nics = candidates_of(machine, NicKind::Rdma);
    nics = nics.empty() ? candidates_of(machine, NicKind::Net) : nics;
    for (std::uint32_t pes = 1; pes <= 9; ++pes) {
      std::vector<PePlace> places;
      for (std::uint32_t pe = 0; pe < pes; ++pe) {
        places.push_back(
            {std::nullopt, pe % static_cast<std::uint32_t>(machine.numa_nodes.size())});
      }
      std::vector<int> users(nics.size(), 0);
      for (std::uint32_t pe = 0; pe < pes; ++pe) {
        const NicChoice choice = choose(machine, nics, places, pe);
        EXPECT_FALSE(choice.chosen.empty()) << name << ", PE " << pe << " of " << pes;
        for (const std::size_t nic : choice.chosen) {
          ++users[nic];
        }
      }
      EXPECT_THAT(users, testing::Each(testing::Ge(1))) << name << ", " << pes << " PEs";
    }
  }
}

// All placements of three PEs: nowhere, on either socket, on a GPU of either socket.
TEST(NicChoice, AnyMixOfPlacesGivesEveryPeANicAndUsesAllUnlessEveryPeHasASwitchOfItsOwn) {
  const Machine machine = fixture("dgx_h100");
  const auto nics = candidates_of(machine, NicKind::Rdma);
  const std::vector<PePlace> kinds{
      {}, {{}, 0}, {{}, 1}, {machine.gpus[0].pci, {}}, {machine.gpus[4].pci, {}}};
  const std::size_t count = kinds.size();
  for (std::size_t mix = 0; mix < count * count * count; ++mix) {
    const std::vector<PePlace> places{kinds[mix % count], kinds[mix / count % count],
                                      kinds[mix / count / count]};
    std::vector<int> users(nics.size(), 0);
    for (std::uint32_t pe = 0; pe < places.size(); ++pe) {
      const NicChoice choice = choose(machine, nics, places, pe);
      ASSERT_FALSE(choice.chosen.empty()) << "mix " << mix;
      for (const std::size_t nic : choice.chosen) {
        ++users[nic];
      }
    }
    const bool all_on_gpus =
        std::ranges::all_of(places, [](const PePlace& place) { return place.gpu.has_value(); });
    if (!all_on_gpus) {
      ASSERT_THAT(users, testing::Each(testing::Ge(1))) << "mix " << mix;
    }
  }
}

}  // namespace
}  // namespace weft::topology
