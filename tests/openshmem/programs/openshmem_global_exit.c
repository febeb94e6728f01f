/* 9.1.5: the last PE ends the job with status 7 while the others wait in a barrier. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  if (shmem_my_pe() == shmem_n_pes() - 1) {
    shmem_global_exit(7);
  }
  shmem_barrier_all();
  printf("the barrier of PE %d ended\n", shmem_my_pe());
  shmem_finalize();
  return 0;
}
