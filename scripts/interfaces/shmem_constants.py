"""OpenSHMEM's constants and types, as include/shmem.h has them."""
CONSTANTS = '''#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "Weft 0.1"
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING

/* Thread levels: all are provided as asked for. */
#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* Hints of shmem_malloc_with_hints. */
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

/* Teams. */
typedef weft_team_t shmem_team_t;
#define SHMEM_TEAM_WORLD WEFT_TEAM_WORLD
#define SHMEM_TEAM_SHARED WEFT_TEAM_NODE
#define SHMEM_TEAM_INVALID WEFT_TEAM_INVALID
#define SHMEM_TEAM_NUM_CONTEXTS 1L
typedef struct shmem_team_config_t { int num_contexts; } shmem_team_config_t;

/* Contexts and their options. */
typedef weft_ctx_t shmem_ctx_t;
#define SHMEM_CTX_DEFAULT WEFT_CTX_DEFAULT
#define SHMEM_CTX_INVALID ((shmem_ctx_t) - 1)
#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L

/* Sessions: hints about what comes next on a context. */
#define SHMEM_CTX_SESSION_BATCH 1L
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L
typedef struct shmem_ctx_session_config_t { size_t total_ops; } shmem_ctx_session_config_t;

#define SHMEM_SIGNAL_SET 1
#define SHMEM_SIGNAL_ADD 2

/* Comparisons. */
#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_GE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_LE 6
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE

/* Work arrays of the deprecated active sets. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 128
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* The complex types, as each language has them; C's in C++ are an extension of some compilers. */
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> weft_complexf_t;
typedef std::complex<double> weft_complexd_t;
#if defined(__GNUC__) && !defined(SHMEM_NO_C_COMPLEX) && !defined(__CUDACC__) && !defined(__NVCOMPILER)
#define WEFT_HAS_C_COMPLEX 1
__extension__ typedef float _Complex weft_c_complexf_t;
__extension__ typedef double _Complex weft_c_complexd_t;
#endif
#else
typedef float _Complex weft_complexf_t;
typedef double _Complex weft_complexd_t;
#endif'''.split("\n")
