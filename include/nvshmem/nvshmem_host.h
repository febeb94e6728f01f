/* NVSHMEM's interface of the host, on Weft: what a program without kernels of its own needs.
 *
 * C, C++ and CUDA. Deviations from NVSHMEM: docs/NVSHMEM.md. */
#ifndef WEFT_NVSHMEM_HOST_H
#define WEFT_NVSHMEM_HOST_H

#include <weft_nvshmem/host/collectives.h>
#include <weft_nvshmem/host/memory.h>
#include <weft_nvshmem/host/order.h>
#include <weft_nvshmem/host/qp.h>
#include <weft_nvshmem/host/reductions.h>
#include <weft_nvshmem/host/rma.h>
#include <weft_nvshmem/host/setup.h>
#include <weft_nvshmem/host/signal.h>
#include <weft_nvshmem/host/teams.h>
#include <weft_nvshmem/host/wait.h>
#include <weft_nvshmem/types.h>

#endif /* WEFT_NVSHMEM_HOST_H */
