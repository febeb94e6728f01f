/* The versions that this implementation claims: of the OpenSHMEM specification, and of NVSHMEM's
 * interface.
 *
 * Source: NVSHMEM's documentation, "Library Constants". */
#ifndef WEFT_NVSHMEM_VERSION_H
#define WEFT_NVSHMEM_VERSION_H

#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3

#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 6
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_VENDOR_VERSION                                                 \
  (NVSHMEM_VENDOR_MAJOR_VERSION * 10000 + NVSHMEM_VENDOR_MINOR_VERSION * 100 + \
   NVSHMEM_VENDOR_PATCH_VERSION)
/* Programs read the version after the first 'v'. */
#define NVSHMEM_VENDOR_STRING "Weft, NVSHMEM v3.6.5"
#define NVSHMEM_MAX_NAME_LEN 256

#endif /* WEFT_NVSHMEM_VERSION_H */
