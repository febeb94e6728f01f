/* 9.2.1: the level that init_thread provides covers the one that was asked for. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int requested = argc > 1 ? atoi(argv[1]) : 0;
  const int levels[] = {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED,
                        SHMEM_THREAD_MULTIPLE};
  int provided = -1;
  int seen = -1;
  if (shmem_init_thread(levels[requested], &provided) != 0) {
    return 1;
  }
  shmem_query_thread(&seen);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    printf("%s\n", provided >= levels[requested] && seen == provided ? "provided" : "not provided");
  }
  shmem_finalize();
  return 0;
}
