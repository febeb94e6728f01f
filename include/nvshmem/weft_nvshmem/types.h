/* NVSHMEM's types and constants, for C, C++ and CUDA, and how the generated headers declare
 * functions.
 *
 * Sources: NVSHMEM's documentation, "Library Constants", "Library Handles" and the pages of each
 * family. Values that programs hard-code (comparisons, signal operations, teams, statuses, errors)
 * are those that they expect.
 *
 * CUDA's own headers are used where the compiler finds them. Without them streams and modules are
 * declared here, and half and __nv_bfloat16 are 16 bits. */
#ifndef WEFT_NVSHMEM_TYPES_H
#define WEFT_NVSHMEM_TYPES_H

/* The device library (src/nvshmem/device_library). */
#ifdef WEFT_NVSHMEM_DEVICE_LIBRARY
#define WEFT_DEVICE_LOADED_MODULE 1
#define WEFT_DEVICE_DIRECT_CALLS 1 /* the kernel's compiler knows no better by a pointer */
#endif

#include <nvshmem_version.h>
#ifdef __CUDACC_RTC__ /* NVRTC: no host, and no headers but CUDA's. */
#include <weft/device/standard.hpp>
using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::ptrdiff_t;
using std::size_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;
#else
#include <stddef.h>
#include <stdint.h>
#endif

#if defined(__has_include) && !defined(__CUDACC_RTC__)
#if __has_include(<cuda_runtime.h>) && __has_include(<cuda_fp16.h>)
#define WEFT_NVSHMEM_CUDA_HEADERS 1
#endif
#endif

#ifdef WEFT_NVSHMEM_CUDA_HEADERS
#include <cuda.h>
#include <cuda_runtime.h>
#else
typedef struct CUstream_st* cudaStream_t;
#endif
#if (defined(WEFT_NVSHMEM_CUDA_HEADERS) && defined(__cplusplus)) || defined(__CUDACC_RTC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else /* CUDA's headers have these names in C++ alone. */
typedef struct weft_nvshmem_half {
  unsigned short bits;
} half;

typedef struct weft_nvshmem_bfloat16 {
  unsigned short bits;
} __nv_bfloat16; /* NOLINT(bugprone-reserved-identifier): CUDA's name */
#endif
/* Repeats what <cuda.h> says. */
typedef struct CUmod_st* CUmodule;
typedef struct CUlib_st* CUlibrary;

#ifdef __cplusplus
#define WEFT_NVSHMEM_BEGIN_C extern "C" {
#define WEFT_NVSHMEM_END_C }
#else
#define WEFT_NVSHMEM_BEGIN_C
#define WEFT_NVSHMEM_END_C
#endif

/* Functions of the host alone: plain C. */
#define WEFT_NVSHMEM_BEGIN_HOST WEFT_NVSHMEM_BEGIN_C
#define WEFT_NVSHMEM_END_HOST WEFT_NVSHMEM_END_C

/* Functions that kernels have too. CUDA has one function of a name for both sides: where kernels
 * are compiled, the name is an inline function of both, and the host's, in a namespace, is what its
 * host side calls. */
#if defined(WEFT_NVSHMEM_DEVICE_LIBRARY) || defined(__CUDACC_RTC__)
/* No host sees the file: for the device library functions of kernels have their C names, and for
   NVRTC are inline. */
#define WEFT_NVSHMEM_KERNELS 1
#define WEFT_NVSHMEM_NO_HOST 1
#ifdef WEFT_NVSHMEM_DEVICE_LIBRARY
#define WEFT_NVSHMEM_GPU extern "C" __device__
#else
#define WEFT_NVSHMEM_GPU static inline __device__ __attribute__((unused))
#endif
#define WEFT_NVSHMEM_BOTH WEFT_NVSHMEM_GPU
#define WEFT_NVSHMEM_ON(on_gpu, on_host) ::weft_nvshmem::on_gpu
#elif defined(__CUDACC__) && !defined(NVSHMEM_HOSTLIB_ONLY)
#define WEFT_NVSHMEM_KERNELS 1
#define WEFT_NVSHMEM_BEGIN_BOTH \
  namespace weft_nvshmem {      \
  namespace host {              \
  extern "C" {
#define WEFT_NVSHMEM_END_BOTH \
  }                           \
  }                           \
  }
#define WEFT_NVSHMEM_GPU static inline __device__ __attribute__((unused))
#define WEFT_NVSHMEM_BOTH static inline __host__ __device__ __attribute__((unused))
#ifdef __CUDA_ARCH__
#define WEFT_NVSHMEM_ON(on_gpu, on_host) ::weft_nvshmem::on_gpu
#else
#define WEFT_NVSHMEM_ON(on_gpu, on_host) ::weft_nvshmem::host::on_host
#endif
#else
#define WEFT_NVSHMEM_BEGIN_BOTH WEFT_NVSHMEM_BEGIN_C
#define WEFT_NVSHMEM_END_BOTH WEFT_NVSHMEM_END_C
#endif

/* ---- Constants ------------------------------------------------------------------------------- */

enum {
  NVSHMEM_THREAD_SINGLE = 0,
  NVSHMEM_THREAD_FUNNELED,
  NVSHMEM_THREAD_SERIALIZED,
  NVSHMEM_THREAD_MULTIPLE
};

enum {
  NVSHMEM_CMP_EQ = 0,
  NVSHMEM_CMP_NE = 1,
  NVSHMEM_CMP_GT = 2,
  NVSHMEM_CMP_LE = 3,
  NVSHMEM_CMP_LT = 4,
  NVSHMEM_CMP_GE = 5
};

enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };

enum nvshmemx_status {
  NVSHMEMX_SUCCESS = 0,
  NVSHMEMX_ERROR_INVALID_VALUE = 1,
  NVSHMEMX_ERROR_OUT_OF_MEMORY = 2,
  NVSHMEMX_ERROR_NOT_SUPPORTED = 3,
  NVSHMEMX_ERROR_SYMMETRY = 4,
  NVSHMEMX_ERROR_GPU_NOT_SELECTED = 5,
  NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED = 6,
  NVSHMEMX_ERROR_INTERNAL = 7
};

/* What nvshmemx_init_status returns. */
enum {
  NVSHMEM_STATUS_NOT_INITIALIZED = 0,
  NVSHMEM_STATUS_IS_BOOTSTRAPPED = 1,
  NVSHMEM_STATUS_IS_INITIALIZED = 2,
  NVSHMEM_STATUS_LIMITED_MPG = 3,
  NVSHMEM_STATUS_FULL_MPG = 4
};

enum {
  NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
  NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
  NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3
};

/* ---- Teams ----------------------------------------------------------------------------------- */

typedef int32_t nvshmem_team_t;

/* All PEs; those whose memory is mapped here; those of the machine; one of each machine. */
enum {
  NVSHMEM_TEAM_INVALID = -1,
  NVSHMEM_TEAM_WORLD = 0,
  NVSHMEM_TEAM_SHARED = 1,
  NVSHMEMX_TEAM_NODE = 2,
  NVSHMEMX_TEAM_SAME_MYPE_NODE = 3
};

typedef uint64_t nvshmemx_team_uniqueid_t;

typedef struct nvshmem_team_config {
  int version;
  int num_contexts;
  nvshmemx_team_uniqueid_t uniqueid;
  char padding[48];
} nvshmem_team_config_t;

enum { NVSHMEM_TEAM_NUM_CONTEXTS = 1, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID = 2 };

#define NVSHMEM_TEAM_CONFIG_INITIALIZER {1, 0, 0, {0}}

/* ---- Queue pairs ----------------------------------------------------------------------------- */

typedef int32_t nvshmemx_qp_handle_t;

enum { NVSHMEMX_QP_DEFAULT = 0, NVSHMEMX_QP_ANY = 1, NVSHMEMX_QP_ALL = NVSHMEMX_QP_ANY };

enum { NVSHMEMX_PE_ANY = -1, NVSHMEMX_PE_ALL = NVSHMEMX_PE_ANY };

/* ---- Set-up ---------------------------------------------------------------------------------- */

/* 128 plain bytes: pass all of them on. */
typedef struct nvshmemx_uniqueid_v1 {
  int version;
  char internal[124];
} nvshmemx_uniqueid_t;

#define NVSHMEMX_UNIQUEID_INITIALIZER {1, {0}}

typedef struct nvshmemx_uniqueid_args_v1 {
  int version;
  nvshmemx_uniqueid_t* id;
  int myrank;
  int nranks;
} nvshmemx_uniqueid_args_t;

typedef struct nvshmemx_init_args_v1 {
  int version;
  nvshmemx_uniqueid_args_t uid_args;
  char content[96];
} nvshmemx_init_args_t;

typedef struct nvshmemx_init_attr_v1 {
  int version;
  void* mpi_comm; /* points to the communicator */
  nvshmemx_init_args_t args;
} nvshmemx_init_attr_t;

#define NVSHMEMX_INIT_ATTR_INITIALIZER \
  {                                    \
    1, NULL, {                         \
      1, {1, NULL, 0, 0}, {0}          \
    }                                  \
  }

#endif /* WEFT_NVSHMEM_TYPES_H */
