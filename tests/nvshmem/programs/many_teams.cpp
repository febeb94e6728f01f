// 128 teams of each PE at a time, by splits of the world in which PEs name different ranges: each
// is used, with blocks that are larger than any buffer of a team too; one more is refused; all are
// destroyed, and it begins again. Prints "all well".
#include <cstdio>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "expect.h"

namespace {

constexpr int kTeams = 128;
constexpr std::size_t kLarge = 50000;

// Of one PE each and of all, in turns.
void make_teams(std::vector<nvshmem_team_t>& teams) {
  const int me = nvshmem_my_pe();
  const int count = nvshmem_n_pes();
  for (int i = 0; i < kTeams; ++i) {
    const bool alone = i % 2 == 1;
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, alone ? me : 0, 1, alone ? 1 : count,
                                      nullptr, 0, &team) == 0);
    EXPECT(nvshmem_team_n_pes(team) == (alone ? 1 : count));
    teams.push_back(team);
  }
}

void use(nvshmem_team_t team, int round, int* dest, int* source) {
  const int size = nvshmem_team_n_pes(team);
  const int me = nvshmem_team_my_pe(team);
  for (std::size_t i = 0; i < kLarge; ++i) {
    source[i] = me + round + static_cast<int>(i);
  }
  EXPECT(nvshmem_team_sync(team) == 0);
  EXPECT(nvshmem_int_sum_reduce(team, dest, source, kLarge) == 0);
  for (std::size_t i = 0; i < kLarge; i += 997) {
    EXPECT(dest[i] == size * (size - 1) / 2 + size * (round + static_cast<int>(i)));
  }
  EXPECT(nvshmem_int_broadcast(team, dest, source, kLarge, size - 1) == 0);
  EXPECT(dest[kLarge - 1] == size - 1 + round + static_cast<int>(kLarge - 1));
  EXPECT(nvshmem_int_fcollect(team, dest, source, 1) == 0);
  EXPECT(dest[size - 1] == size - 1 + round);
  EXPECT(nvshmem_team_sync(team) == 0);
}

}  // namespace

int main() {
  nvshmem_init();
  auto* dest = static_cast<int*>(nvshmem_malloc(kLarge * sizeof(int)));
  auto* source = static_cast<int*>(nvshmem_malloc(kLarge * sizeof(int)));
  for (int round = 0; round < 2; ++round) {
    std::vector<nvshmem_team_t> teams;
    make_teams(teams);
    for (const nvshmem_team_t team : teams) {
      use(team, round, dest, source);
    }
    nvshmem_team_t one_more = 7;
    EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(), nullptr, 0,
                                      &one_more) != 0);
    EXPECT(one_more == NVSHMEM_TEAM_INVALID);
    for (const nvshmem_team_t team : teams) {
      nvshmem_team_destroy(team);
    }
  }
  nvshmem_free(source);
  nvshmem_free(dest);
  const bool speaks = nvshmem_my_pe() == 0;
  nvshmem_finalize();
  if (speaks) {
    std::puts("all well");
  }
  return 0;
}
