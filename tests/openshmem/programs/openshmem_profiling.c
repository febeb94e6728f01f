/* 10: a program that puts itself between the user and the library: its shmem_barrier_all,
 * shmem_long_put and shmem_malloc count the calls and go on to the pshmem_ names. */
#include <pshmem.h>
#include <shmem.h>
#include <stdio.h>

static int barrier_count;
static int put_count;
static int malloc_count;

void shmem_barrier_all(void) {
  ++barrier_count;
  pshmem_barrier_all();
}

void shmem_long_put(long* dest, const long* source, size_t nelems, int pe) {
  ++put_count;
  pshmem_long_put(dest, source, nelems, pe);
}

void* shmem_malloc(size_t size) {
  ++malloc_count;
  return pshmem_malloc(size);
}

int main(void) {
  shmem_init();
  const int right = (shmem_my_pe() + 1) % shmem_n_pes();
  const int left = (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
  long* words = shmem_malloc(3 * sizeof *words);
  const long source[3] = {shmem_my_pe(), 1, 2};
  shmem_barrier_all();
  shmem_long_put(words, source, 3, right);
  shmem_barrier_all();
  int status = words[0] != left || words[2] != 2;
  if (barrier_count != 2 || put_count != 1 || malloc_count != 1) {
    status = 1; /* calls inside the library must not count either */
  }
  if (shmem_my_pe() == 0) {
    printf("counted %d barriers, %d puts, %d mallocs\n", barrier_count, put_count, malloc_count);
  }
  shmem_free(words);
  shmem_finalize();
  return status;
}
