/* Collectives between the PEs of one node, the same loop for both sides of a comparison: OpenSHMEM
 * 1.5 (oshcc), MPI over shared memory (mpicc -DWITH_MPI), or the active sets of OpenSHMEM 1.4,
 * which other implementations have too (oshcc -DWITH_ACTIVE_SETS; fcollect and barrier alone).
 * Prints one JSON line for each collective and size: the median of 7 of the mean time of a call.
 *   collectives_latency [barrier|all]
 * barrier: that alone, for more PEs than memory for the rest */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WITH_MPI
#include <mpi.h>
#else
#include <shmem.h>
#endif

enum { REPEATS = 7 };

static const size_t largest = (size_t)4 << 20;
static int me, count;
static char *source, *dest;

#ifdef WITH_MPI
static void start(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
}

static void* allocate(size_t bytes) {
  return malloc(bytes);
}

static void end(void) {
  MPI_Finalize();
}

static void barrier(size_t bytes) {
  (void)bytes;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void alltoall(size_t bytes) {
  MPI_Alltoall(source, (int)bytes, MPI_CHAR, dest, (int)bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void fcollect(size_t bytes) {
  MPI_Allgather(source, (int)bytes, MPI_CHAR, dest, (int)bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void sum(size_t bytes) {
  MPI_Allreduce(source, dest, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
#else
static void start(int argc, char** argv) {
  (void)argc;
  (void)argv;
  shmem_init();
  me = shmem_my_pe();
  count = shmem_n_pes();
}

static void* allocate(size_t bytes) {
  return shmem_malloc(bytes);
}

static void end(void) {
  shmem_finalize();
}

static void barrier(size_t bytes) {
  (void)bytes;
  shmem_barrier_all();
}

#ifdef WITH_ACTIVE_SETS
static void fcollect(size_t bytes) {
  static long sync[2][SHMEM_COLLECT_SYNC_SIZE];
  static unsigned calls;
  if (calls == 0) {
    for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; ++i) {
      sync[0][i] = sync[1][i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
  }
  shmem_fcollect64(dest, source, bytes / 8, 0, 0, count, sync[calls++ % 2]);
}
#else
static void alltoall(size_t bytes) {
  shmem_alltoallmem(SHMEM_TEAM_WORLD, dest, source, bytes);
}

static void fcollect(size_t bytes) {
  shmem_fcollectmem(SHMEM_TEAM_WORLD, dest, source, bytes);
}

static void sum(size_t bytes) {
  shmem_double_sum_reduce(SHMEM_TEAM_WORLD, (double*)dest, (const double*)source,
                          bytes / sizeof(double));
}
#endif
#endif

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const char* what, void (*call)(size_t), size_t bytes) {
  const int calls = bytes <= 4096 ? 500 : bytes <= 65536 ? 60 : 6;
  double samples[REPEATS];
  for (int i = 0; i < calls / 5 + 1; ++i) {
    call(bytes);
  }
  for (int repeat = 0; repeat < REPEATS; ++repeat) {
    barrier(0);
    const double begin = now();
    for (int i = 0; i < calls; ++i) {
      call(bytes);
    }
    samples[repeat] = (now() - begin) / calls * 1e6;
  }
  qsort(samples, REPEATS, sizeof *samples, ascending);
  if (me == 0) {
    printf("{\"what\": \"%s\", \"pes\": %d, \"size\": %zu, \"value\": %.4f, \"unit\": \"us\"}\n",
           what, count, bytes, samples[REPEATS / 2]);
    fflush(stdout);
  }
}

static void measure_all(void) {
#ifdef WITH_ACTIVE_SETS
  for (size_t bytes = (size_t)4 << 10; bytes <= largest; bytes *= 4) {
    measure("fcollect", fcollect, bytes);
  }
#else
  for (size_t bytes = 8; bytes <= largest; bytes *= 8) {
    measure("alltoall", alltoall, bytes);
    measure("fcollect", fcollect, bytes);
    measure("sum", sum, bytes);
  }
  measure("alltoall", alltoall, largest);
  measure("fcollect", fcollect, largest);
  measure("sum", sum, largest);
#endif
}

int main(int argc, char** argv) {
  start(argc, argv);
  measure("barrier", barrier, 0);
  if (argc < 2 || strcmp(argv[1], "barrier") != 0) {
    source = allocate(largest * (size_t)count);
    dest = allocate(largest * (size_t)count);
    memset(source, 1, largest * (size_t)count);
    memset(dest, 2, largest * (size_t)count);
    measure_all();
  }
  end();
  return 0;
}
