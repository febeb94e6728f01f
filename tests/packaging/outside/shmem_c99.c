/* Prints "PE 0 of 2 has 2": a C99 program of shmem.h as anybody would write it. */
#include <shmem.h>
#include <stdio.h>

static int from_left;

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  shmem_int_p(&from_left, me + 1, (me + 1) % count);
  shmem_barrier_all();
  if (me == 0) {
    printf("PE %d of %d has %d\n", me, count, from_left);
  }
  shmem_finalize();
  return 0;
}
