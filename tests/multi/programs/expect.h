/* EXPECT for the programs that tests start as PEs: says what failed where, on which PE, and ends
 * the program, so that weft-run ends the job. Plain C, like weft.h. */
#ifndef WEFT_TESTS_EXPECT_H
#define WEFT_TESTS_EXPECT_H

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>

#define WEFT_EXPECT(condition)                                                                     \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: PE %d: not so: %s; last error: %s\n", __FILE__, __LINE__, weft_pe(), \
              #condition, weft_last_error());                                                      \
      _Exit(1);                                                                                    \
    }                                                                                              \
  } while (0)

#define WEFT_EXPECT_OK(call) WEFT_EXPECT((call) == WEFT_OK)

#endif
