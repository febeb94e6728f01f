/* NVSHMEM's interface on Weft: for the host, and, where nvcc compiles the file, for kernels.
 * Kernels need no relocatable device code (-rdc), but may have it. NVSHMEM_HOSTLIB_ONLY leaves out
 * what kernels call.
 *
 * Deviations from NVSHMEM: docs/NVSHMEM.md. */
#ifndef WEFT_NVSHMEM_H
#define WEFT_NVSHMEM_H

#include <non_abi/nvshmemx_error.h>
#include <nvshmem_host.h>

#ifdef WEFT_NVSHMEM_KERNELS
#include <weft_nvshmem/core.cuh>
#include <weft_nvshmem/gpu/amo.cuh>
#include <weft_nvshmem/gpu/collectives.cuh>
#include <weft_nvshmem/gpu/memory.cuh>
#include <weft_nvshmem/gpu/order.cuh>
#include <weft_nvshmem/gpu/qp.cuh>
#include <weft_nvshmem/gpu/reductions.cuh>
#include <weft_nvshmem/gpu/rma.cuh>
#include <weft_nvshmem/gpu/setup.cuh>
#include <weft_nvshmem/gpu/signal.cuh>
#include <weft_nvshmem/gpu/teams.cuh>
#include <weft_nvshmem/gpu/wait.cuh>
#endif

#if defined(WEFT_NVSHMEM_KERNELS) && !defined(WEFT_NVSHMEM_NO_HOST)
#include <cooperative_groups.h>
namespace cg = cooperative_groups; /* programs use the name, and leave it to this header */
#endif

#ifdef WEFT_NVSHMEM_CUDA_HEADERS
#include <weft_nvshmem/launch.h>
#endif

#endif /* WEFT_NVSHMEM_H */
