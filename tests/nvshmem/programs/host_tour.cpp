// Every family of host calls, on symmetric memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which
// needs no GPU. PE 0 prints "all well" at the end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "expect.h"

namespace {

int me;
int count;

void memory() {
  EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
  if (me == 0) {
    EXPECT(nvshmem_malloc(0) == nullptr);  // by one PE alone: no collective call
    EXPECT(nvshmem_calloc(0, 8) == nullptr && nvshmem_align(64, 0) == nullptr);
    nvshmem_free(nullptr);
  }
  auto* zeroed = static_cast<unsigned char*>(nvshmem_calloc(100, 3));
  for (int i = 0; i < 300; ++i) {
    EXPECT(zeroed[i] == 0);
  }
  void* aligned = nvshmem_align(4096, 10);
  EXPECT(reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
  EXPECT(nvshmem_ptr(zeroed, me) == zeroed);
  EXPECT(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, zeroed) == nullptr);
  char own[64];
  EXPECT(nvshmemx_buffer_register(own, sizeof own) == 0);
  EXPECT(nvshmemx_buffer_register(own + 8, 8) == NVSHMEMX_ERROR_INVALID_VALUE);
  EXPECT(nvshmemx_buffer_register(zeroed, 8) == NVSHMEMX_ERROR_INVALID_VALUE);
  EXPECT(nvshmemx_buffer_unregister(own) == 0);
  EXPECT(nvshmemx_buffer_unregister(own) == NVSHMEMX_ERROR_INVALID_VALUE);
  EXPECT(nvshmemx_buffer_register_symmetric(own, sizeof own, 0) == nullptr);
  EXPECT(nvshmemx_buffer_register_symmetric_at_preferred_address(own, sizeof own, zeroed, 0) ==
         nullptr);
  EXPECT(nvshmemx_buffer_unregister_symmetric(own, sizeof own) == NVSHMEMX_ERROR_INVALID_VALUE);
  nvshmem_free(aligned);
  nvshmem_free(zeroed);
}

void transfers() {
  const int next = (me + 1) % count;
  const int last = (me + count - 1) % count;
  auto* field = static_cast<long*>(nvshmem_calloc(100, sizeof(long)));
  long mine[100];
  for (int i = 0; i < 100; ++i) {
    mine[i] = me * 1000 + i;
  }
  nvshmem_long_put(field, mine, 100, next);
  nvshmem_barrier_all();
  EXPECT(field[0] == last * 1000 && field[99] == last * 1000 + 99);
  nvshmem_long_get_nbi(mine, field, 100, next);
  nvshmem_quiet();
  EXPECT(mine[5] == me * 1000 + 5);
  nvshmem_barrier_all();
  nvshmem_long_p(field, me, next);
  nvshmem_barrier_all();
  EXPECT(field[0] == last && nvshmem_long_g(field, next) == me);
  nvshmem_barrier_all();
  nvshmem_long_iput(field, mine, 2, 3, 10, next);
  nvshmem_barrier_all();
  EXPECT(field[2] == last * 1000 + 3 && field[18] == last * 1000 + 27);
  long back[20] = {};
  nvshmem_iget64(back, field, 1, 2, 10, next);
  EXPECT(back[9] == me * 1000 + 27);
  nvshmem_barrier_all();
  nvshmem_putmem_nbi(field, mine, sizeof mine, next);
  nvshmem_quiet();
  nvshmem_sync_all();
  EXPECT(field[99] == last * 1000 + 99);
  nvshmemx_putmem_on_stream(field, mine, 8, me, nullptr);
  EXPECT(field[0] == me * 1000);
  nvshmem_free(field);
}

void signals() {
  const int next = (me + 1) % count;
  auto* field = static_cast<double*>(nvshmem_calloc(10, sizeof(double)));
  auto* word = static_cast<std::uint64_t*>(nvshmem_calloc(2, 8));
  double mine[10];
  for (double& one : mine) {
    one = me + 0.5;
  }
  nvshmem_double_put_signal(field, mine, 10, word, 3, NVSHMEM_SIGNAL_SET, next);
  EXPECT(nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, 3) == 3);
  EXPECT(field[9] == (me + count - 1) % count + 0.5);
  nvshmem_barrier_all();
  nvshmem_double_put_signal_nbi(field, mine, 10, word, 2, NVSHMEM_SIGNAL_ADD, next);
  nvshmemx_uint64_wait_until_on_stream(word, NVSHMEM_CMP_EQ, 5, nullptr);
  nvshmem_fence();
  nvshmemx_signal_op(word + 1, 7, NVSHMEM_SIGNAL_SET, next);
  nvshmemx_signal_wait_until_on_stream(word + 1, NVSHMEM_CMP_NE, 0, nullptr);
  EXPECT(word[1] == 7);
  nvshmem_barrier_all();
  nvshmem_free(word);
  nvshmem_free(field);
}

void collectives_on(nvshmem_team_t team) {
  const int size = nvshmem_team_n_pes(team);
  const int index = nvshmem_team_my_pe(team);
  auto* dest = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  auto* source = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  if (team != NVSHMEM_TEAM_INVALID) {
    for (int i = 0; i < size; ++i) {
      source[i] = index * 100 + i;
    }
    EXPECT(nvshmem_int_alltoall(team, dest, source, 1) == 0);
    EXPECT(dest[size - 1] == (size - 1) * 100 + index);
    EXPECT(nvshmem_barrier(team) == 0);
    EXPECT(nvshmem_int_broadcast(team, dest, source, 1, size - 1) == 0);
    EXPECT(dest[0] == (size - 1) * 100);
    EXPECT(nvshmem_team_sync(team) == 0);
    EXPECT(nvshmem_fcollectmem(team, dest, source, sizeof(int)) == 0);
    EXPECT(dest[size - 1] == (size - 1) * 100);
    EXPECT(nvshmem_sync(team) == 0);
    EXPECT(nvshmem_int_sum_reduce(team, dest, source, 1) == 0);
    EXPECT(dest[0] == size * (size - 1) / 2 * 100);
    EXPECT(nvshmem_int_max_reducescatter(team, dest, source, 1) == 0);
    EXPECT(dest[0] == (size - 1) * 100 + index);
    auto* bytes = reinterpret_cast<unsigned char*>(source);
    bytes[0] = static_cast<unsigned char>(1U << static_cast<unsigned>(index % 8));
    EXPECT(nvshmemx_uchar_or_reduce_on_stream(team, bytes, bytes, 1, nullptr) == 0);
    EXPECT(bytes[0] == (1 << (size < 8 ? size : 8)) - 1);
  }
  nvshmem_free(source);
  nvshmem_free(dest);
}

void teams() {
  EXPECT(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == me);
  EXPECT(nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == count);  // the machine, however many nodes it is
  EXPECT(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == me);
  EXPECT(nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 1);
  EXPECT(nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1);
  collectives_on(NVSHMEM_TEAM_WORLD);
  collectives_on(NVSHMEMX_TEAM_NODE);

  // The same triplet on all PEs; those outside get no team.
  nvshmem_team_t even = 77;
  EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (count + 1) / 2, nullptr, 0, &even) ==
         0);
  EXPECT((even == NVSHMEM_TEAM_INVALID) == (me % 2 == 1));
  collectives_on(even);
  EXPECT(nvshmem_team_translate_pe(even, 0, NVSHMEM_TEAM_WORLD) == (me % 2 == 0 ? 0 : -1));
  nvshmem_team_destroy(even);

  // Disjoint teams in one call: the start differs between PEs.
  nvshmem_team_t half[3];
  const int width = count >= 2 ? count / 2 : 1;
  for (nvshmem_team_t& one : half) {
    EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, me / width * width, 1, width, nullptr, 0,
                                      &one) == 0);
    EXPECT(nvshmem_team_n_pes(one) == width && nvshmem_team_my_pe(one) == me % width);
  }
  collectives_on(half[1]);
  for (nvshmem_team_t one : half) {
    nvshmem_team_destroy(one);
  }

  nvshmem_team_t x = 0;
  nvshmem_team_t y = 0;
  nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  config.num_contexts = 3;
  EXPECT(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, &config, NVSHMEM_TEAM_NUM_CONTEXTS, &x,
                               nullptr, 0, &y) == 0);
  EXPECT(nvshmem_team_my_pe(x) == me % 2 && nvshmem_team_my_pe(y) == me / 2);
  nvshmem_team_config_t got;
  nvshmem_team_get_config(x, &got);
  EXPECT(got.num_contexts == 3);
  nvshmem_team_destroy(x);
  nvshmem_team_destroy(y);

  nvshmem_team_t wrong = 5;
  EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, count + 1, nullptr, 0, &wrong) != 0);
  EXPECT(wrong == NVSHMEM_TEAM_INVALID);
}

void queries() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  char name[NVSHMEM_MAX_NAME_LEN];
  nvshmem_info_get_version(&major, &minor);
  EXPECT(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  EXPECT(major == 3 && minor == 6 && patch == 5);
  nvshmem_info_get_name(name);
  // What a known program does: the version follows the first 'v'.
  EXPECT(std::sscanf(std::strchr(name, 'v'), "v%d.%d.%d", &major, &minor, &patch) == 3 &&
         major == 3);
  int provided = -1;
  nvshmem_query_thread(&provided);
  EXPECT(provided == NVSHMEM_THREAD_SERIALIZED);
  nvshmemx_qp_handle_t* handles = nullptr;
  EXPECT(nvshmemx_qp_create(4, &handles) == 0 && handles[3] == NVSHMEMX_QP_DEFAULT);
  std::free(handles);
}

void everything() {
  me = nvshmem_my_pe();
  count = nvshmem_n_pes();
  memory();
  transfers();
  signals();
  teams();
  queries();
}

}  // namespace

int main() {
  EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
  nvshmem_init();
  int provided = -1;
  EXPECT(nvshmem_init_thread(NVSHMEM_THREAD_MULTIPLE, &provided) == 0);  // counted
  everything();
  void* late = nvshmem_malloc(8);
  nvshmem_finalize();
  EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
  nvshmem_barrier_all();
  const bool prints = me == 0;
  nvshmem_finalize();
  EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
  nvshmem_free(late);  // as a destructor would: without meaning now
  if (prints) {
    std::puts("all well");
  }
  return 0;
}
