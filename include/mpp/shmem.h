/* The name that OpenSHMEM has deprecated. */
#ifndef MPP_SHMEM_H
#define MPP_SHMEM_H
#include <shmem.h>
#endif /* MPP_SHMEM_H */
