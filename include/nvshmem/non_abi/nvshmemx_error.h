/* Messages of programs by the names that NVSHMEM's header of this path has: a line on stderr with
 * the place in the source. NVSHMEM's performance tests print with them. Other names of that header
 * are NVSHMEM's own.
 *
 * C, C++ and CUDA. Arguments as of printf; no newline at the end. */
#ifndef WEFT_NVSHMEM_ERROR_H
#define WEFT_NVSHMEM_ERROR_H

#ifndef __CUDACC_RTC__
#include <stdio.h>
#include <stdlib.h>

#ifndef NVSHMEMI_ERROR_PRINT
#define NVSHMEMI_ERROR_PRINT(...)                                       \
  do {                                                                  \
    (void)fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, __func__); \
    (void)fprintf(stderr, __VA_ARGS__);                                 \
    (void)fputc('\n', stderr);                                          \
  } while (0)
#endif

/* The same, and the end of the program. */
#ifndef NVSHMEMI_ERROR_EXIT
#define NVSHMEMI_ERROR_EXIT(...)       \
  do {                                 \
    NVSHMEMI_ERROR_PRINT(__VA_ARGS__); \
    exit(EXIT_FAILURE);                \
  } while (0)
#endif
#endif

#endif /* WEFT_NVSHMEM_ERROR_H */
