/* Checks for programs of NVSHMEM: a wrong one prints itself and ends the job.
 *
 * No state. */
#ifndef WEFT_TESTS_NVSHMEM_EXPECT_H
#define WEFT_TESTS_NVSHMEM_EXPECT_H

#include <nvshmem.h>
#include <stdio.h>

#define EXPECT(is_so)                                                                     \
  do {                                                                                    \
    if (!(is_so)) {                                                                       \
      fprintf(stderr, "PE %d, line %d: not so: %s\n", nvshmem_my_pe(), __LINE__, #is_so); \
      nvshmem_global_exit(1);                                                             \
    }                                                                                     \
  } while (0)

#endif /* WEFT_TESTS_NVSHMEM_EXPECT_H */
