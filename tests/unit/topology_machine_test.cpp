// Machines read from the hwloc fixtures: counts, places, distances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/topology/interfaces.hpp"
#include "src/topology/links.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/topology_fixtures.hpp"

namespace weft::topology {
namespace {

std::size_t count_of(const Machine& machine, NicKind kind) {
  return candidates_of(machine, kind).size();
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Machine, P5HasEightGpusAndThirtyTwoRdmaNics) {
  const Machine machine = fixture("p5_48xlarge");
  EXPECT_EQ(machine.core_count, 96U);
  EXPECT_EQ(machine.pu_count, 192U);
  EXPECT_EQ(machine.numa_nodes.size(), 2U);
  EXPECT_EQ(machine.gpus.size(), 8U);
  EXPECT_EQ(count_of(machine, NicKind::Rdma), 32U);
  EXPECT_EQ(count_of(machine, NicKind::Net), 1U);
}

TEST(Machine, P5GpuSharesItsSwitchWithFourNicsItsSocketWithTwelveMore) {
  const Machine machine = fixture("p5_48xlarge");
  for (const PePlace& place : one_gpu_each(machine)) {
    std::map<Distance, int> counts;
    for (const NicCandidate& nic : candidates_of(machine, NicKind::Rdma)) {
      ++counts[distance(machine, place, nic.pci)];
    }
    EXPECT_EQ(counts[Distance::SameSwitch], 4);
    EXPECT_EQ(counts[Distance::SameNuma], 12);
    EXPECT_EQ(counts[Distance::OtherNuma], 16);
  }
}

TEST(Machine, GraceHopperDoesNotTakeGpuMemoryForANumaNodeWithCores) {
  const Machine machine = fixture("gh200_slingshot");
  ASSERT_EQ(machine.numa_nodes.size(), 4U);
  EXPECT_EQ(machine.numa_nodes[3].index, 3U);
  EXPECT_EQ(machine.numa_nodes[3].pu_count, 72U);
  ASSERT_EQ(machine.gpus.size(), 4U);
  const PciDevice* gpu = find_device(machine, machine.gpus[2].pci);
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->numa, 2U);
}

TEST(Machine, DgxHasTwelveRdmaPortsOfWhichOneIsBesideEachGpu) {
  const Machine machine = fixture("dgx_h100");
  EXPECT_EQ(count_of(machine, NicKind::Rdma), 12U);
  ASSERT_EQ(machine.gpus.size(), 8U);
  for (const PePlace& place : one_gpu_each(machine)) {
    int beside = 0;
    for (const NicCandidate& nic : candidates_of(machine, NicKind::Rdma)) {
      beside += distance(machine, place, nic.pci) == Distance::SameSwitch ? 1 : 0;
    }
    EXPECT_EQ(beside, 1);
  }
}

TEST(Machine, VgaOfAServersBmcIsNoGpu) {
  EXPECT_TRUE(fixture("two_socket_ethernet").gpus.empty());
}

TEST(Machine, LaptopHasOneNumaNodeAndItsIntegratedGraphicsIsNoGpu) {
  const Machine machine = fixture("laptop");
  EXPECT_EQ(machine.core_count, 4U);
  EXPECT_EQ(machine.numa_nodes.size(), 1U);
  EXPECT_TRUE(machine.gpus.empty());
  ASSERT_NE(find_nic(machine, "wlp0s20f3"), nullptr);
  EXPECT_EQ(distance(machine, {std::nullopt, 0}, find_nic(machine, "wlp0s20f3")->pci),
            Distance::SameNuma);
}

TEST(Machine, DistanceToAVirtualNicOrFromAnUntoldPlaceIsUnknown) {
  const Machine machine = fixture("p5_48xlarge");
  EXPECT_EQ(distance(machine, {machine.gpus[0].pci, std::nullopt}, std::nullopt),
            Distance::Unknown);
  EXPECT_EQ(distance(machine, {}, machine.nics[0].pci), Distance::Unknown);
  EXPECT_EQ(distance(machine, {std::nullopt, 0}, PciAddress{9, 9, 9, 0}), Distance::Unknown);
}

TEST(Machine, FileThatIsNotThereIsAnErrorThatNamesIt) {
  try {
    static_cast<void>(read_machine_from_xml("/nowhere/machine.xml"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/nowhere/machine.xml"));
    EXPECT_EQ(error.status(), Status::InvalidArgument);
  }
}

TEST(Machine, LiveMachineHasACoreAndALoopback) {
  const Machine machine = read_machine();
  EXPECT_GE(machine.pu_count, 1U);
  EXPECT_GE(machine.numa_nodes.size(), 1U);
  EXPECT_TRUE(std::ranges::any_of(machine.nics,
                                  [](const Nic& nic) { return nic.kind == NicKind::Loopback; }));
}

TEST(Machine, InterfacesAreListedOnceEachWithTheirAddresses) {
  std::set<std::string> names;
  for (const Nic& nic : list_interfaces()) {
    EXPECT_TRUE(names.insert(nic.name).second) << nic.name;
    if (nic.kind == NicKind::Loopback && nic.up) {
      EXPECT_FALSE(nic.addresses.empty());
    }
  }
}

TEST(Machine, RdmaPortsStateAndRateComeFromSysfs) {
  const auto root = std::filesystem::temp_directory_path() / fmt::format("weft-ib-{}", ::getpid());
  std::filesystem::create_directories(root / "mlx5_0/ports/1");
  std::ofstream(root / "mlx5_0/ports/1/state") << "4: ACTIVE\n";
  std::ofstream(root / "mlx5_0/ports/1/rate") << "400 Gb/sec (4X NDR)\n";
  std::filesystem::create_directories(root / "mlx5_1/ports/1");
  std::ofstream(root / "mlx5_1/ports/1/state") << "1: DOWN\n";
  std::vector<Nic> nics{{"mlx5_0", NicKind::Rdma}, {"mlx5_1", NicKind::Rdma}};
  read_rdma_ports(nics, root.string());
  std::filesystem::remove_all(root);
  EXPECT_TRUE(nics[0].up);
  EXPECT_EQ(nics[0].rate_bits_per_s, 400'000'000'000U);
  EXPECT_FALSE(nics[1].up);
  EXPECT_EQ(nics[1].rate_bits_per_s, 0U);
}

TEST(Links, OfABridgeLeadToANetworkIfOneIsNotOfAContainer) {
  const std::vector<Link> links{{.index = 1, .name = "lo"},
                                {.index = 2, .bridge = 5, .name = "eth0"},
                                {.index = 3, .bridge = 6, .name = "veth7c1", .kind = "veth"},
                                {.index = 4, .bridge = 7, .name = "vnet0", .kind = "tun"},
                                {.index = 5, .name = "br0", .kind = "bridge"},
                                {.index = 6, .name = "docker0", .kind = "bridge"},
                                {.index = 7, .name = "virbr0", .kind = "bridge"},
                                {.index = 8, .bridge = 9, .name = "bond0.7", .kind = "vlan"},
                                {.index = 9, .name = "br7", .kind = "bridge"},
                                {.index = 10, .name = "br8", .kind = "bridge"}};
  EXPECT_TRUE(leads_to_a_network(links, "br0"));
  EXPECT_TRUE(leads_to_a_network(links, "br7"));
  for (const char* name : {"docker0", "virbr0", "br8", "br9"}) {
    EXPECT_FALSE(leads_to_a_network(links, name)) << name;
  }
}

TEST(Links, AreThoseOfTheKernel) {
  const std::vector<Link> links = list_links();
  const std::vector<Nic> nics = list_interfaces();
  for (const Nic& nic : nics) {
    EXPECT_NE(std::ranges::find(links, nic.name, &Link::name), links.end()) << nic.name;
  }
}

TEST(Machine, AssumedPlacesSpreadPesOverTheGpus) {
  const Machine machine = fixture("p5_48xlarge");
  const auto two = assumed_places(machine, 2);
  EXPECT_EQ(two[0].gpu, machine.gpus[0].pci);
  EXPECT_EQ(two[1].gpu, machine.gpus[4].pci);
  EXPECT_EQ(assumed_places(machine, 16)[15].gpu, machine.gpus[7].pci);
  EXPECT_FALSE(assumed_places(fixture("laptop"), 1)[0].gpu.has_value());
}

TEST(Machine, FixturesAreWhatTheirGeneratorWrites) {
  const auto out = std::filesystem::temp_directory_path() / fmt::format("weft-topo-{}", ::getpid());
  const std::string command = fmt::format(
      "python3 '{}/scripts/make_topology_fixtures.py' --out '{}'", WEFT_SOURCE_DIR, out.string());
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): one thread
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           fixture_path("x").substr(0, fixture_path("x").rfind('/')))) {
    EXPECT_EQ(text_of(entry.path()), text_of(out / entry.path().filename())) << entry.path();
    ++compared;
  }
  EXPECT_EQ(compared, 5U);
  std::filesystem::remove_all(out);
}

}  // namespace
}  // namespace weft::topology
