/* All PEs send PE 0 a block and raise a flag there. PE 0 starts when all flags are up, and takes
 * the blocks in the order in which the searches name them, with no mask: a search that always
 * begins at the first word never comes to the second. Prints "taken by any, test_any, some,
 * test_some" once everything was taken four times. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 100 };

static int* blocks;
static int* flags;
static int pe_count;

/* The sum of what was not taken before among the `count` PEs of `found`; takes it. */
static long take(const size_t* found, size_t count, char* taken, int* left) {
  long sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!taken[found[i]]) {
      taken[found[i]] = 1;
      --*left;
      for (int k = 0; k < BLOCK; ++k) {
        sum += blocks[found[i] * BLOCK + (size_t)k];
      }
    }
  }
  return sum;
}

enum { WAIT_ANY, TEST_ANY, WAIT_SOME, TEST_SOME, WAY_COUNT };

static size_t search(int way, size_t* found) {
  const size_t count = (size_t)pe_count;
  switch (way) {
    case WAIT_ANY:
      found[0] = shmem_int_wait_until_any(flags, count, NULL, SHMEM_CMP_EQ, 1);
      return 1;
    case TEST_ANY:
      found[0] = shmem_int_test_any(flags, count, NULL, SHMEM_CMP_NE, 0);
      return found[0] == SIZE_MAX ? 0 : 1;
    case WAIT_SOME:
      return shmem_int_wait_until_some(flags, count, found, NULL, SHMEM_CMP_EQ, 1);
    default:
      return shmem_int_test_some(flags, count, found, NULL, SHMEM_CMP_NE, 0);
  }
}

static long take_all(int way) {
  char* taken = calloc((size_t)pe_count, 1);
  size_t* found = calloc((size_t)pe_count, sizeof *found);
  long sum = 0;
  for (int left = pe_count; left > 0;) {
    const size_t count = search(way, found);
    sum += take(found, count, taken, &left);
  }
  free(found);
  free(taken);
  return sum;
}

int main(void) {
  shmem_init();
  pe_count = shmem_n_pes();
  const int me = shmem_my_pe();
  blocks = shmem_calloc((size_t)pe_count * BLOCK, sizeof *blocks);
  flags = shmem_calloc((size_t)pe_count, sizeof *flags);
  int mine[BLOCK];
  for (int k = 0; k < BLOCK; ++k) {
    mine[k] = me * BLOCK + k;
  }
  shmem_int_put_nbi(&blocks[me * BLOCK], mine, BLOCK, 0);
  shmem_fence();
  shmem_int_atomic_set(&flags[me], 1, 0);
  shmem_barrier_all();
  int wrong = 0;
  const long last = (long)pe_count * BLOCK - 1;
  for (int way = 0; me == 0 && way < WAY_COUNT; ++way) {
    wrong += take_all(way) != last * (last + 1) / 2;
  }
  if (me == 0) {
    printf("%s\n", wrong ? "wrong sums" : "taken by any, test_any, some, test_some");
  }
  shmem_barrier_all();
  shmem_finalize();
  return wrong;
}
