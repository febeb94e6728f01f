/* init_time: each PE prints how long weft_init took it, and how long it computed in it and before
 * main. Compile it against the build that is measured:
 *   cc -O2 bench/init_time.c -o init_time -Iinclude -Lbuild/release/lib -lweft \
 *      -Wl,-rpath,$PWD/build/release/lib
 *   srun -N 4 -n 64 --mpi=pmi2 ./init_time | sort -n | tail -1 */
#include <weft/weft.h>

#include <stdio.h>
#include <time.h>

static double now_s(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(void) {
  const double start = now_s(CLOCK_MONOTONIC);
  if (weft_init() != WEFT_OK) {
    return 1; /* has said why */
  }
  const double taken = now_s(CLOCK_MONOTONIC) - start;
  printf("%.3f s, %.3f s of CPU, PE %d of %d\n", taken, now_s(CLOCK_PROCESS_CPUTIME_ID), weft_pe(),
         weft_pe_count());
  return weft_finalize();
}
