/* The smallest program that uses the installed headers and library: one PE that puts to itself. */
#include <weft/weft.h>

#include <stdio.h>

int main(void) {
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  int* word = weft_calloc(1, sizeof *word);
  const int value = 42;
  weft_put(word, &value, sizeof value, weft_pe());
  weft_quiet();
  printf("PE %d of %d has %d\n", weft_pe(), weft_pe_count(), *word);
  weft_free(word);
  return weft_finalize();
}
