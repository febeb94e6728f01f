/* Weft's C interface: symmetric memory and one-sided communication for every CPU thread.
 *
 * Words (docs/GLOSSARY.md): a PE is a process of the job. A symmetric address is one inside memory
 * that weft_malloc, weft_align or weft_calloc returned; it names the same object on every PE.
 * "Complete" is said of the caller's side, "visible" of the target's.
 *
 * Threads: every function may be called by any thread at any time between weft_init and
 * weft_finalize, except the collective ones (marked so), which one thread of each PE calls, in the
 * same order on all PEs.
 *
 * Errors: functions that return int give WEFT_OK or a negative weft_status; weft_last_error() has
 * the sentence for the calling thread. A lost peer (WEFT_PEER_LOST) stays lost.
 *
 * What orders what: docs/MEMORY_MODEL.md. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_EXPORT __attribute__((visibility("default")))
#else
#define WEFT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1

typedef enum weft_status {
  WEFT_OK = 0,
  WEFT_AGAIN = 1, /* never returned by this interface: it makes progress and tries again */
  WEFT_INVALID_ARGUMENT = -1,
  WEFT_NOT_INITIALIZED = -2,
  WEFT_PEER_LOST = -3,
  WEFT_OUT_OF_MEMORY = -4,
  WEFT_MISMATCH = -5,
  WEFT_TIMEOUT = -6,
  WEFT_INTERNAL = -7
} weft_status;

/* Comparisons of wait and test. */
typedef enum weft_comparison {
  WEFT_EQ = 1,
  WEFT_NE = 2,
  WEFT_GT = 3,
  WEFT_GE = 4,
  WEFT_LT = 5,
  WEFT_LE = 6
} weft_comparison;

/* What a signal does to its word. */
typedef enum weft_signal_operation {
  WEFT_SIGNAL_SET = 1,
  WEFT_SIGNAL_ADD = 2
} weft_signal_operation;

/* ---- Setup ----------------------------------------------------------------------------------- */

/* Collective. Joins the job (weft-run, mpirun, srun, torchrun, or alone), maps the node's heaps,
 * opens the rails and their connections. Reads WEFT_* (docs/ENV.md). Errors are printed as one line
 * and returned; a second call without weft_finalize between is WEFT_INVALID_ARGUMENT. */
WEFT_EXPORT int weft_init(void);

/* Collective. Completes everything that is outstanding, waits for all PEs, frees all. */
WEFT_EXPORT int weft_finalize(void);

/* 1 between weft_init and weft_finalize, else 0. */
WEFT_EXPORT int weft_initialized(void);

/* The sentence of the calling thread's last error; "" if there was none. Valid until the next. */
WEFT_EXPORT const char* weft_last_error(void);

/* The status of the calling thread's last error, which is then forgotten; WEFT_OK if there was none
 * since the last call. For the functions that return a value, and so no status. */
WEFT_EXPORT int weft_take_error(void);

/* Ends all PEs of the job at once; weft-run returns `status`, whatever it is, and nobody reports a lost
 * peer. Not collective; does not return. Files are flushed on this PE; the others get SIGTERM. Under
 * mpirun and srun, PMIx ends the job. Under torchrun, and where the launcher cannot be reached, this PE
 * exits with `status`, and the others when they next wait for it. */
WEFT_EXPORT void weft_global_exit(int status);

/* This PE, 0 .. weft_pe_count() - 1; -1 before init. */
WEFT_EXPORT int weft_pe(void);
WEFT_EXPORT int weft_pe_count(void);

/* The node (PEs that share memory): its number, how many there are, my place in it. */
WEFT_EXPORT int weft_node(void);
WEFT_EXPORT int weft_node_count(void);
WEFT_EXPORT int weft_node_pe(void);
WEFT_EXPORT int weft_node_pe_count(void);
/* The node of `pe`, or WEFT_INVALID_ARGUMENT. */
WEFT_EXPORT int weft_node_of(int pe);

/* ---- Symmetric memory (collective; the arguments must be the same on all PEs) ------------------ */

/* `size` bytes, aligned to 64; NULL with WEFT_OUT_OF_MEMORY or WEFT_MISMATCH. Ends with a barrier. */
WEFT_EXPORT void* weft_malloc(size_t size);
/* Zeroed. */
WEFT_EXPORT void* weft_calloc(size_t count, size_t size);
/* `alignment` is a power of two, at most the size of the heap; the address is a multiple of it on each PE.
 * NULL with WEFT_INVALID_ARGUMENT for others, with a line that says the largest. */
WEFT_EXPORT void* weft_align(size_t alignment, size_t size);
/* Another block of `size` bytes with the contents of `address` up to the smaller of both sizes, which is
 * then freed. NULL as address: weft_malloc; 0 as size: weft_free, and NULL is returned. On an error NULL,
 * and the old block stays. */
WEFT_EXPORT void* weft_realloc(void* address, size_t size);
/* Starts with a barrier. NULL is accepted. */
WEFT_EXPORT int weft_free(void* address);

/* Makes `bytes` of this PE's own memory at `address` symmetric, as a window: the same size on all PEs, at
 * addresses that may differ. A place in it names the same place in the window of each PE. Peers of the
 * node reach it by cross-memory attach, others over rails. WEFT_INVALID_ARGUMENT for memory that is
 * empty or symmetric already, WEFT_OUT_OF_MEMORY beyond 1,000 windows or so. Not while other threads of this PE are in Weft's calls. */
WEFT_EXPORT int weft_window_register(void* address, size_t bytes);
/* Starts with a barrier; no context may have an operation on it outstanding. After it the memory is the
 * PE's own again: the NICs have let go of it. */
WEFT_EXPORT int weft_window_unregister(void* address);

/* Where `address` of `pe` is mapped here, for loads and stores; NULL if it is on another node. */
WEFT_EXPORT void* weft_ptr(const void* address, int pe);

/* ---- Contexts ---------------------------------------------------------------------------------- */

/* An independent stream of operations: fence and quiet of one do not wait for another. */
typedef struct weft_context* weft_context_t;
#define WEFT_CONTEXT_DEFAULT ((weft_context_t)0)

WEFT_EXPORT int weft_context_create(weft_context_t* context);
/* Waits for its operations (quiet), then frees it. */
WEFT_EXPORT int weft_context_destroy(weft_context_t context);

/* ---- Remote memory access ---------------------------------------------------------------------- *
 * `dest` of a put and `source` of a get are symmetric addresses; the other side is any memory.
 * put returns when `source` may be reused; put_nbi when the operation is queued (`source` must stay
 * as it is until quiet). get returns when `dest` is filled; get_nbi's `dest` is filled after quiet.
 * Strides count elements, as in OpenSHMEM's iput. */

WEFT_EXPORT int weft_put(void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_get(void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_put_nbi(void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_get_nbi(void* dest, const void* source, size_t bytes, int pe);

WEFT_EXPORT int weft_ctx_put(
    weft_context_t context, void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_ctx_get(
    weft_context_t context, void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_ctx_put_nbi(
    weft_context_t context, void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_ctx_get_nbi(
    weft_context_t context, void* dest, const void* source, size_t bytes, int pe);

/* The shape of a strided transfer: `count` elements of `element_bytes`, strides in elements. */
typedef struct weft_stride {
  ptrdiff_t dest;
  ptrdiff_t source;
  size_t element_bytes;
  size_t count;
} weft_stride;

WEFT_EXPORT int weft_iput(void* dest, const void* source, weft_stride stride, int pe);
WEFT_EXPORT int weft_iget(void* dest, const void* source, weft_stride stride, int pe);
WEFT_EXPORT int weft_ctx_iput(
    weft_context_t context, void* dest, const void* source, weft_stride stride, int pe);
WEFT_EXPORT int weft_ctx_iget(
    weft_context_t context, void* dest, const void* source, weft_stride stride, int pe);

/* ---- Signals ----------------------------------------------------------------------------------- */

/* A signal word of the target and what happens to it. */
typedef struct weft_signal {
  uint64_t* word; /* symmetric */
  uint64_t value;
  weft_signal_operation operation;
} weft_signal;

/* Puts `bytes` and then updates the signal word; whoever sees the signal sees the data. Signals of
 * two calls to one peer may overtake each other unless a fence stands between. */
WEFT_EXPORT int weft_put_signal(
    void* dest, const void* source, size_t bytes, weft_signal signal, int pe);
WEFT_EXPORT int weft_put_signal_nbi(
    void* dest, const void* source, size_t bytes, weft_signal signal, int pe);
WEFT_EXPORT int weft_ctx_put_signal(weft_context_t context,
                                    void* dest,
                                    const void* source,
                                    size_t bytes,
                                    weft_signal signal,
                                    int pe);
WEFT_EXPORT int weft_ctx_put_signal_nbi(weft_context_t context,
                                        void* dest,
                                        const void* source,
                                        size_t bytes,
                                        weft_signal signal,
                                        int pe);

/* Updates a signal word alone. */
WEFT_EXPORT int weft_signal_post(weft_signal signal, int pe);
WEFT_EXPORT int weft_ctx_signal_post(weft_context_t context, weft_signal signal, int pe);

/* Reads a signal word of this PE; what its put_signal wrote is visible after. */
WEFT_EXPORT uint64_t weft_signal_fetch(const uint64_t* word);
/* Waits until `*word` compares to `value`; the word that satisfied it goes to `*seen` unless NULL. */
WEFT_EXPORT int weft_signal_wait_until(uint64_t* word,
                                       weft_comparison comparison,
                                       uint64_t value,
                                       uint64_t* seen);

/* ---- Order and completion ---------------------------------------------------------------------- */

/* Operations before it are visible at each target before operations after it to the same target. */
WEFT_EXPORT int weft_fence(void);
WEFT_EXPORT int weft_ctx_fence(weft_context_t context);
/* Returns when all operations before it are visible at their targets. */
WEFT_EXPORT int weft_quiet(void);
WEFT_EXPORT int weft_ctx_quiet(weft_context_t context);

/* ---- Collectives over all PEs; those of teams are in weft/collectives.h --------------------------- */

/* quiet, then waits for all PEs. */
WEFT_EXPORT int weft_barrier_all(void);
/* Waits for all PEs; says nothing about outstanding operations. */
WEFT_EXPORT int weft_sync_all(void);
/* Block k of `source` goes to block weft_pe() of `dest` on PE k; both symmetric, pe_count blocks. */
WEFT_EXPORT int weft_alltoall(void* dest, const void* source, size_t bytes_per_pe);
/* `source` of `root` goes to `dest` of every PE; both symmetric. */
WEFT_EXPORT int weft_broadcast(void* dest, const void* source, size_t bytes, int root);

/* ---- Connections and counters -------------------------------------------------------------------- */

/* Opens every connection that the policy may use to the `count` PEs named (all PEs if NULL). The
 * named PEs must be making progress. Not collective. */
WEFT_EXPORT int weft_warmup(const int* pes, size_t count);

/* What one rail has done since init. Bytes are payload plus Weft's own headers. */
typedef struct weft_rail_counters {
  char nic[32];
  char address[64];
  uint64_t tx_bytes; /* handed to the NIC */
  uint64_t
      rx_bytes; /* gets and messages that arrived; a peer's puts are in its own counters below */
  uint64_t tx_operations, rx_operations;
  uint64_t tx_signals, rx_signals;
  uint64_t outstanding_bytes;
  uint64_t retries; /* posts that the NIC's full queue refused */
  uint64_t errors;  /* operations that failed and went out on another rail */
  uint32_t up;      /* 1 while in the plan */
  uint32_t warm;    /* 1 once all its connections are open */
} weft_rail_counters;

/* Fills up to `capacity` entries; returns the number of rails of this PE. */
WEFT_EXPORT int weft_counters(weft_rail_counters* rails, size_t capacity);

/* What this PE has exchanged with one rail of a peer. A put leaves no trace at its target, so the RX
 * of a rail is the sum of `put_bytes` over all PEs plus what its own PE received by gets. */
typedef struct weft_peer_rail_counters {
  uint64_t put_bytes; /* sent to this rail of the peer, headers included */
  uint64_t get_bytes; /* read from it */
} weft_peer_rail_counters;

/* Fills up to `capacity` entries; returns the number of rails of `pe` that this PE uses (0 if it is
 * reached through memory), or a negative status. */
WEFT_EXPORT int weft_peer_counters(int pe, weft_peer_rail_counters* rails, size_t capacity);
/* The name of the policy in use. */
WEFT_EXPORT const char* weft_rail_policy(void);
/* Lets the library make progress from this thread; needed only with WEFT_PROGRESS_THREAD=no. */
WEFT_EXPORT void weft_progress(void);

#ifdef __cplusplus
}
#endif

#include <weft/collectives.h>
#include <weft/typed.h>

#endif /* WEFT_WEFT_H */
