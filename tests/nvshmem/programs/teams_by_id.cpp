// Teams made by nvshmemx_team_init: of all PEs in reverse order, of those with an odd number while
// the others make a team of theirs, and one in two; what is wrong is refused. Prints "all well".
#include <cstdint>
#include <cstdio>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "expect.h"

namespace {

std::uint64_t* words = nullptr;  // of all PEs; the ids travel by them

// The id that PE `root` has made, on every PE of the world.
nvshmemx_team_uniqueid_t id_of(int root) {
  nvshmemx_team_uniqueid_t mine = 0;
  EXPECT(nvshmemx_team_get_uniqueid(&mine) == 0);  // every PE asks, one is used
  words[0] = mine;
  EXPECT(nvshmem_uint64_broadcast(NVSHMEM_TEAM_WORLD, words + 1, words, 1, root) == 0);
  const nvshmemx_team_uniqueid_t id = words[1];
  EXPECT(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0);
  return id;
}

nvshmem_team_t make(nvshmemx_team_uniqueid_t id, int count, int index) {
  nvshmem_team_config_t config;
  config.uniqueid = id;  // the rest is not initialized
  nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
  EXPECT(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, count, index) == 0);
  EXPECT(team != NVSHMEM_TEAM_INVALID);
  EXPECT(nvshmem_team_n_pes(team) == count);
  EXPECT(nvshmem_team_my_pe(team) == index);
  return team;
}

// `pes` are those of the team, in its order.
void use(nvshmem_team_t team, const std::vector<int>& pes) {
  for (int i = 0; i < static_cast<int>(pes.size()); ++i) {
    EXPECT(nvshmem_team_translate_pe(team, i, NVSHMEM_TEAM_WORLD) == pes[i]);
    EXPECT(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pes[i], team) == i);
  }
  words[0] = nvshmem_my_pe();
  EXPECT(nvshmem_team_sync(team) == 0);
  EXPECT(nvshmem_uint64_fcollect(team, words + 2, words, 1) == 0);
  for (std::size_t i = 0; i < pes.size(); ++i) {
    EXPECT(words[2 + i] == static_cast<std::uint64_t>(pes[i]));
  }
  nvshmem_team_t first = NVSHMEM_TEAM_INVALID;
  EXPECT(nvshmem_team_split_strided(team, 0, 1, 1, nullptr, 0, &first) == 0);
  EXPECT((first != NVSHMEM_TEAM_INVALID) == (nvshmem_my_pe() == pes[0]));
  nvshmem_team_destroy(first);
  nvshmem_team_destroy(team);
}

void reversed() {
  const int count = nvshmem_n_pes();
  std::vector<int> pes;
  for (int pe = count; pe-- > 0;) {
    pes.push_back(pe);
  }
  use(make(id_of(count - 1), count, count - 1 - nvshmem_my_pe()), pes);
}

void odd_and_even() {
  const int me = nvshmem_my_pe();
  const int count = nvshmem_n_pes();
  const nvshmemx_team_uniqueid_t of_even = id_of(0);
  const nvshmemx_team_uniqueid_t of_odd = id_of(count > 1 ? 1 : 0);
  std::vector<int> pes;
  for (int pe = me % 2; pe < count; pe += 2) {
    pes.push_back(pe);
  }
  use(make(me % 2 == 0 ? of_even : of_odd, static_cast<int>(pes.size()), me / 2), pes);
}

void wrong() {
  nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  nvshmem_team_t team = 7;
  EXPECT(nvshmemx_team_init(&team, &config, 0, 1, 0) == NVSHMEMX_ERROR_INVALID_VALUE);
  EXPECT(team == NVSHMEM_TEAM_INVALID);
  EXPECT(nvshmemx_team_init(&team, nullptr, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 1, 0) ==
         NVSHMEMX_ERROR_INVALID_VALUE);
  EXPECT(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 1, 0) ==
         NVSHMEMX_ERROR_INVALID_VALUE);  // the id is 0
  EXPECT(nvshmemx_team_get_uniqueid(&config.uniqueid) == 0);
  EXPECT(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 1, 1) ==
         NVSHMEMX_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  nvshmem_init();
  words = static_cast<std::uint64_t*>(nvshmem_malloc((2 + nvshmem_n_pes()) * sizeof(*words)));
  for (int round = 0; round < 3; ++round) {
    reversed();
    odd_and_even();
  }
  wrong();
  nvshmem_free(words);
  const bool speaks = nvshmem_my_pe() == 0;
  nvshmem_finalize();
  if (speaks) {
    std::puts("all well");
  }
  return 0;
}
