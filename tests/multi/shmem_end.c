/* One PE ends the job with shmem_global_exit while the others are in the middle of something.
 *
 *   shmem_end STATUS barrier|wait|compute|finalize
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long word;

static void do_as_asked(const char* what) {
  if (strcmp(what, "barrier") == 0) {
    shmem_barrier_all();
  } else if (strcmp(what, "wait") == 0) {
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
  } else if (strcmp(what, "finalize") == 0) {
    shmem_finalize();
  } else {
    for (volatile long i = 0;; ++i) {
    }
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    return 3;
  }
  shmem_init();
  shmem_barrier_all();
  if (shmem_my_pe() == shmem_n_pes() - 1) {
    printf("written before the end");
    shmem_global_exit(atoi(argv[1]));
  }
  do_as_asked(argv[2]);
  puts("went on");
  return 4;
}
