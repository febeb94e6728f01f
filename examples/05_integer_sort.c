/* A bucket sort of integers: each PE owns a range of keys. Senders reserve room at the owner with
 * an atomic fetch_add, and put their keys there; nobody waits for anybody before the one barrier.
 *
 *   $ weft-run -n 2 05_integer_sort
 *   integer sort: all keys are in order, none is lost, none is new
 *
 * (and a line with the rate) */
#define _POSIX_C_SOURCE 200809L
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS_PER_PE = 20000, KEY_BITS = 20, ROOM = 2 * KEYS_PER_PE };

static uint32_t received[ROOM]; /* keys that this PE owns */
static uint64_t received_count;

/* Checked over all PEs: how many keys, their sum, and the sum of their squares. */
typedef struct fingerprint {
  uint64_t count, sum, squares;
} fingerprint;

static uint32_t next_random(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 40) & ((1U << KEY_BITS) - 1);
}

static int owner_of(uint32_t key) {
  return (int)(((uint64_t)key * (uint64_t)shmem_n_pes()) >> KEY_BITS);
}

/* Orders the keys by owner; starts[pe] is where those of `pe` begin. */
static void bucket(const uint32_t* keys, uint32_t* by_owner, size_t* starts) {
  const int pes = shmem_n_pes();
  size_t* place = calloc((size_t)pes + 1, sizeof *place);
  for (int i = 0; i < KEYS_PER_PE; ++i) {
    ++place[owner_of(keys[i]) + 1];
  }
  for (int pe = 0; pe < pes; ++pe) {
    place[pe + 1] += place[pe];
  }
  memcpy(starts, place, ((size_t)pes + 1) * sizeof *place);
  for (int i = 0; i < KEYS_PER_PE; ++i) {
    by_owner[place[owner_of(keys[i])]++] = keys[i];
  }
  free(place);
}

/* Beginning with the right neighbour, so that not all begin with PE 0. */
static void send_to_owners(const uint32_t* by_owner, const size_t* starts) {
  const int pes = shmem_n_pes();
  for (int step = 1; step <= pes; ++step) {
    const int pe = (shmem_my_pe() + step) % pes;
    const size_t count = starts[pe + 1] - starts[pe];
    const uint64_t place = shmem_uint64_atomic_fetch_add(&received_count, count, pe);
    if (place + count > ROOM) {
      fprintf(stderr, "PE %d owns more keys than it has room for\n", pe);
      shmem_global_exit(1);
    }
    shmem_uint32_put_nbi(&received[place], &by_owner[starts[pe]], count, pe);
  }
  shmem_barrier_all(); /* all keys are with their owners */
}

static int compare(const void* a, const void* b) {
  const uint32_t x = *(const uint32_t*)a;
  const uint32_t y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

static fingerprint fingerprint_of(const uint32_t* keys, uint64_t count) {
  fingerprint f = {count, 0, 0};
  for (uint64_t i = 0; i < count; ++i) {
    f.sum += keys[i];
    f.squares += (uint64_t)keys[i] * keys[i];
  }
  return f;
}

static int is_sorted_and_mine(void) {
  for (uint64_t i = 0; i < received_count; ++i) {
    if (owner_of(received[i]) != shmem_my_pe() || (i > 0 && received[i - 1] > received[i])) {
      return 0;
    }
  }
  return 1;
}

/* Whether all PEs hold what they should, and together what they started with. */
static int is_right(fingerprint before) {
  static uint64_t mine[4];
  static uint64_t total[4];
  const fingerprint after = fingerprint_of(received, received_count);
  mine[0] = before.count - after.count; /* modulo 2^64: only the sums over all PEs must be 0 */
  mine[1] = before.sum - after.sum;
  mine[2] = before.squares - after.squares;
  mine[3] = !is_sorted_and_mine();
  shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, total, mine, 4);
  return total[0] == 0 && total[1] == 0 && total[2] == 0 && total[3] == 0;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(void) {
  shmem_init();
  uint32_t* keys = malloc(KEYS_PER_PE * sizeof *keys);
  uint32_t* by_owner = malloc(KEYS_PER_PE * sizeof *by_owner);
  size_t* starts = malloc(((size_t)shmem_n_pes() + 1) * sizeof *starts);
  uint64_t state = (uint64_t)shmem_my_pe() * 7919 + 1;
  for (int i = 0; i < KEYS_PER_PE; ++i) {
    keys[i] = next_random(&state);
  }

  shmem_barrier_all();
  const double start = seconds();
  bucket(keys, by_owner, starts);
  send_to_owners(by_owner, starts);
  qsort(received, received_count, sizeof *received, compare);
  const double elapsed = seconds() - start;

  const int right = is_right(fingerprint_of(keys, KEYS_PER_PE));
  if (shmem_my_pe() == 0) {
    printf("integer sort: %s\n",
           right ? "all keys are in order, none is lost, none is new" : "the result is wrong");
    printf("rate: %.2f million keys a second\n",
           (double)KEYS_PER_PE * shmem_n_pes() / elapsed * 1e-6);
  }
  free(starts);
  free(by_owner);
  free(keys);
  shmem_finalize();
  return !right;
}
