/* Where NVSHMEM says what it was built with. Programs include it; Weft defines none of these
 * options.
 *
 * Empty on purpose. */
#ifndef WEFT_NVSHMEM_BUILD_OPTIONS_H
#define WEFT_NVSHMEM_BUILD_OPTIONS_H
#endif /* WEFT_NVSHMEM_BUILD_OPTIONS_H */
