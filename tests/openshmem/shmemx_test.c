/* The names from before 1.6 (shmemx.h): they are the functions that 1.6 has. */
#include <shmemx.h>

#include "tests/openshmem/suite.h"

TEST(shmemx_names, "1.6: blocks, scans and signals by the names that Sandia OpenSHMEM gave them") {
  int* area = suite_symmetric(16 * sizeof *area);
  uint64_t* word = suite_symmetric(sizeof *word);
  const int local[6] = {1, 2, 3, 4, 5, 6};
  int back[6] = {0};
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  shmemx_int_ibput(area, local, 4, 2, 2, 3, suite_right());
  shmemx_ctx_ibput32(context, area + 12, local, 2, 2, 2, 1, suite_right());
  shmemx_ibput(context, area + 14, local + 4, 2, 2, 2, 1, suite_right());
  shmem_ctx_quiet(context);
  shmem_barrier_all();
  const int expected[16] = {1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0, 1, 2, 5, 6};
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQUAL(expected[i], area[i]);
  }
  shmemx_ibget(back, area, 2, 4, 2, 3, suite_left());
  EXPECT_EQUAL(6, back[5]);
  shmemx_signal_set(word, 5, suite_right());
  EXPECT_EQUAL(5, shmem_signal_wait_until(word, SHMEM_CMP_NE, 0));
  shmem_barrier_all();
  shmemx_ctx_signal_add(context, word, 2, suite_right());
  EXPECT_EQUAL(7, shmem_signal_wait_until(word, SHMEM_CMP_NE, 5));
  area[0] = 1;
  EXPECT_EQUAL(0, shmemx_sum_inscan(SHMEM_TEAM_WORLD, area + 1, area, 1));
  EXPECT_EQUAL(suite_me + 1, area[1]);
  EXPECT_EQUAL(0, shmemx_int_sum_exscan(SHMEM_TEAM_WORLD, area + 1, area, 1));
  EXPECT_EQUAL(suite_me, area[1]);
  shmem_ctx_destroy(context);
}
