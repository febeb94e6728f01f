/* 8 environment variables: whether a block of 10 MiB fits into the symmetric heap that the user
   asked for. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  void* block = shmem_malloc((size_t)10 << 20);
  if (shmem_my_pe() == 0) {
    printf("%s\n", block ? "fits" : "does not fit");
  }
  shmem_free(block);
  shmem_finalize();
  return 0;
}
