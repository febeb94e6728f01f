/* Annex F: start_pes, a second call of it, the deprecated names of the numbers, and an end without
   finalize. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  start_pes(0);
  start_pes(0); /* changes nothing */
  static int word;
  shmem_int_atomic_inc(&word, (_my_pe() + 1) % _num_pes());
  shmem_barrier_all();
  if (word != 1) {
    printf("PE %d: expected 1, got %d\n", _my_pe(), word);
    return 1;
  }
  if (_my_pe() == 0) {
    printf("started %d PEs\n", _num_pes());
  }
  return 0;
}
