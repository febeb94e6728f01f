/* The node-local speed of an OpenSHMEM library, as the base of comparisons: put + quiet, get and
 * fetch_add of 8 bytes, puts of 4 KiB without a quiet between them, and puts and gets of 4 KiB to
 * 16 MiB. Prints one JSON line each.
 *   oshcc -O2 bench/oshmem_latency.c -o oshmem_latency && oshrun -n 2 ./oshmem_latency */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void print_value(const char* what, size_t size, double value, const char* unit) {
  printf(
      "{\"program\": \"oshmem_latency\", \"what\": \"%s\", \"size\": %zu, \"value\": %.6f, "
      "\"unit\": \"%s\"}\n",
      what, size, value, unit);
  fflush(stdout);
}

static void small_operations(long* word, int count) {
  long value = 1;
  double start = now();
  for (int i = 0; i < count; ++i) {
    shmem_long_put(word, &value, 1, 1);
    shmem_quiet();
  }
  print_value("put_quiet", sizeof(long), (now() - start) / count * 1e6, "us");
  start = now();
  for (int i = 0; i < count; ++i) {
    shmem_long_get(&value, word, 1, 1);
  }
  print_value("get", sizeof(long), (now() - start) / count * 1e6, "us");
  start = now();
  for (int i = 0; i < count; ++i) {
    value += shmem_long_atomic_fetch_add(word, 1, 1);
  }
  print_value("fetch_add", sizeof(long), (now() - start) / count * 1e6, "us");
}

/* Puts of 4 KiB to 16 places in turn, with a quiet after each 256. */
static void put_rate(char* dest, const char* source) {
  const int count = 500000;
  double start = 0;
  for (int i = -count / 10; i < count; ++i) {
    if (i == 0) {
      start = now();
    }
    shmem_putmem(dest + (size_t)(i & 15) * 4096, source, 4096, 1);
    if (i % 256 == 0) {
      shmem_quiet();
    }
  }
  shmem_quiet();
  print_value("put_rate", 4096, count / (now() - start) / 1e6, "M/s");
}

static void large(char* dest, char* source, size_t size) {
  int count = (int)((size_t)1024 * 1024 * 1024 / size);
  if (count > 5000) {
    count = 5000;
  }
  for (int is_get = 0; is_get < 2; ++is_get) {
    double start = 0;
    for (int i = -(count / 10 + 1); i < count; ++i) {
      if (i == 0) {
        start = now();
      }
      if (is_get) {
        shmem_getmem(source, dest, size, 1);
      } else {
        shmem_putmem(dest, source, size, 1);
        shmem_quiet();
      }
    }
    print_value(is_get ? "get" : "put", size, (double)size * count / (now() - start) / 1e9, "GB/s");
  }
}

int main(void) {
  const size_t largest = (size_t)16 << 20;
  shmem_init();
  if (shmem_n_pes() < 2) {
    fprintf(stderr, "oshmem_latency needs 2 PEs; start it with oshrun -n 2\n");
    shmem_global_exit(2);
  }
  long* word = shmem_malloc(sizeof(long));
  char* source = shmem_malloc(largest);
  /* Between the buffers, so that both do not start at the same place of a page: copies by rep
   * movsb, which some libraries take, drop to a tenth there. */
  char* gap = shmem_malloc(2176);
  char* dest = shmem_malloc(largest);
  memset(gap, 0, 2176);
  memset(source, 1, largest);
  memset(dest, 2, largest);
  *word = 0;
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    small_operations(word, 200000);
    put_rate(dest, source);
    for (size_t size = 4096; size <= largest; size *= 4) {
      large(dest, source, size);
    }
  }
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
