/* Random updates of a table that is spread over all PEs (GUPS): word ^= random, by atomics, so that
 * not one update is lost. Making all updates a second time must give back the table as it was.
 *
 *   $ weft-run -n 2 06_random_access
 *   random access: 0 wrong words
 *
 * (and a line with the rate) */
#define _POSIX_C_SOURCE 200809L
#include <shmem.h>
#include <stdio.h>
#include <time.h>

enum { WORDS_PER_PE = 1024, UPDATES_PER_PE = 4 * WORDS_PER_PE };

static uint64_t table[WORDS_PER_PE];

static uint64_t next_random(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state ^ (*state >> 29);
}

/* Every PE updates words of all PEs; the same ones in each pass. */
static void update(void) {
  const uint64_t pes = (uint64_t)shmem_n_pes();
  uint64_t state = (uint64_t)shmem_my_pe() + 1;
  for (int i = 0; i < UPDATES_PER_PE; ++i) {
    const uint64_t value = next_random(&state);
    const uint64_t word = (value >> 16) % (WORDS_PER_PE * pes);
    shmem_uint64_atomic_xor(&table[word % WORDS_PER_PE], value, (int)(word / WORDS_PER_PE));
  }
  shmem_barrier_all(); /* completes the updates of all */
}

static uint64_t start_value(int i) {
  return (uint64_t)shmem_my_pe() * WORDS_PER_PE + (uint64_t)i;
}

static long count_changed(void) {
  long changed = 0;
  for (int i = 0; i < WORDS_PER_PE; ++i) {
    changed += table[i] != start_value(i);
  }
  return changed;
}

static long sum_over_pes(long value) {
  static long mine;
  static long total;
  mine = value;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &total, &mine, 1);
  const long result = total;
  shmem_barrier_all(); /* before mine and total serve again */
  return result;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(void) {
  shmem_init();
  for (int i = 0; i < WORDS_PER_PE; ++i) {
    table[i] = start_value(i);
  }
  shmem_barrier_all();

  const double start = seconds();
  update();
  const double elapsed = seconds() - start;

  const long touched = sum_over_pes(count_changed());
  update();
  const long wrong = sum_over_pes(count_changed());
  if (shmem_my_pe() == 0) {
    printf("random access: %ld wrong words%s\n", wrong,
           touched > 0 ? "" : ", but none was ever updated");
    printf("rate: %.6f GUPS\n", (double)UPDATES_PER_PE * shmem_n_pes() / elapsed * 1e-9);
  }
  shmem_finalize();
  return wrong != 0 || touched == 0;
}
