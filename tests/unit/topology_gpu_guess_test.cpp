// Which GPU a PE is taken to use when its NICs are chosen, and what follows on the shapes of real
// machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/topology/gpu_guess.hpp"
#include "tests/unit/topology_fixtures.hpp"

namespace weft::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<PciAddress> addresses(std::uint32_t count) {
  std::vector<PciAddress> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    all.push_back({.bus = 0x10 + i});
  }
  return all;
}

GpuQuestion on_machine(std::uint32_t gpus, std::uint32_t pes, std::uint32_t pe = 0) {
  return {.visible = addresses(gpus),
          .machine_gpu_count = gpus,
          .machine_pe = pe,
          .machine_pe_count = pes};
}

TEST(GpuGuess, TheUsersWordCountsMost) {
  GpuQuestion question = on_machine(8, 8, 3);
  question.current = 5;
  question.local_rank = "6";
  question.setting = "0000:59:00.0";
  EXPECT_EQ(guess_gpu(question).gpu, (PciAddress{.bus = 0x59}));
  question.setting = "none";
  EXPECT_EQ(guess_gpu(question).gpu, std::nullopt);
}

TEST(GpuGuess, AnAddressThatIsNoneIsRefused) {
  GpuQuestion question = on_machine(8, 8);
  question.setting = "first";
  try {
    static_cast<void>(guess_gpu(question));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::InvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("WEFT_GPU=first"));
  }
}

TEST(GpuGuess, ThenTheGpuThatTheThreadHas) {
  GpuQuestion question = on_machine(8, 8, 3);
  question.local_rank = "6";
  question.current = 5;
  EXPECT_EQ(guess_gpu(question).gpu, question.visible[5]);
}

TEST(GpuGuess, ThenTheOnlyOneThatTheLauncherShows) {
  GpuQuestion question = on_machine(1, 8, 3);
  question.machine_gpu_count = 8;
  question.local_rank = "0";
  EXPECT_EQ(guess_gpu(question).gpu, question.visible[0]);
}

TEST(GpuGuess, ThenTheOneOfTheLocalRank) {
  GpuQuestion question = on_machine(8, 2);
  question.local_rank = "6";
  EXPECT_EQ(guess_gpu(question).gpu, question.visible[6]);
  for (const char* nonsense : {"8", "-1", "x", "1x", ""}) {
    question.local_rank = nonsense;
    EXPECT_EQ(guess_gpu(question).gpu, std::nullopt) << nonsense;
  }
}

// One PE on eight GPUs may be a program for CPUs, and then wants all NICs; so may one on a single
// GPU.
TEST(GpuGuess, WithAsManyPesAsGpusEachHasItsOwnAndOtherwiseNobody) {
  for (std::uint32_t gpus = 0; gpus <= 9; ++gpus) {
    for (std::uint32_t pes = 1; pes <= 9; ++pes) {
      for (std::uint32_t pe = 0; pe < pes; ++pe) {
        const GpuQuestion question = on_machine(gpus, pes, pe);
        const auto expected = gpus > 1 && gpus == pes ? std::optional(question.visible[pe])
                                                      : std::optional<PciAddress>();
        EXPECT_EQ(guess_gpu(question).gpu, expected) << gpus << " GPUs, PE " << pe << " of " << pes;
      }
    }
  }
}

// What the PEs of a job compute: each its own GPU, then all the same choice of NICs.
std::vector<std::size_t> nics_of(const Machine& machine,
                                 std::uint32_t pe,
                                 std::uint32_t pes,
                                 std::uint32_t gpus) {
  std::vector<PePlace> places;
  for (std::uint32_t i = 0; i < pes; ++i) {
    GpuQuestion question = on_machine(0, pes, i);
    std::ranges::transform(machine.gpus.begin(), machine.gpus.begin() + gpus,
                           std::back_inserter(question.visible), &Gpu::pci);
    question.machine_gpu_count = machine.gpus.size();
    places.push_back({.gpu = guess_gpu(question).gpu});
  }
  const auto nics = candidates_of(machine, NicKind::Rdma);
  return choose_nics(machine, {nics, places, pe, {}}).chosen;
}

TEST(GpuGuess, EightPesOfAJobOnP5TakeTheNicsBehindTheirGpus) {
  const Machine machine = fixture("p5_48xlarge");
  for (std::uint32_t pe = 0; pe < 8; ++pe) {
    const std::size_t first = 4 * std::size_t{pe};
    EXPECT_THAT(nics_of(machine, pe, 8, 8), ElementsAre(first, first + 1, first + 2, first + 3));
  }
}

TEST(GpuGuess, ALonePeOnP5WithoutAGpuTakesAllNics) {
  EXPECT_EQ(nics_of(fixture("p5_48xlarge"), 0, 1, 8).size(), 32U);
}

}  // namespace
}  // namespace weft::topology
