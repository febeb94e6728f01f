/* Joins a job and says who is there.
 *
 *   $ weft-run -n 2 01_hello
 *   PE 0 of 2: my left neighbour is PE 1
 *   PE 1 of 2: my left neighbour is PE 0
 *
 * (in any order) */
#include <weft/weft.h>

#include <stdio.h>

int main(void) {
  if (weft_init() != WEFT_OK) {
    return 1; /* the reason is on stderr */
  }
  /* Every PE has an int at the same symmetric address. */
  int* left = weft_calloc(1, sizeof *left);
  const int me = weft_pe();
  weft_put(left, &me, sizeof me, (me + 1) % weft_pe_count());
  weft_barrier_all(); /* all puts have arrived */
  printf("PE %d of %d: my left neighbour is PE %d\n", me, weft_pe_count(), *left);
  weft_free(left);
  return weft_finalize();
}
